#include "app/state/mechanism_controller.h"
#include "app/state/explorer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "app/state/mechanism_swaps.h"
#include "core/attention/masks.h"
#include "core/attention/mechanism_math.h"
#include "core/edits/mechanism_edit.h"
#include "core/edits/temperature_edit.h"
#include "core/model/weights.h"
#include "core/run/mechanism_input.h"
#include "tests/attention/mechanisms/input.h"
#include "tests/support/paths.h"

namespace headscope::mechanism_controller_test {

using testing::gap;

namespace {

/// Frames until `done`, ten seconds at most.
template <class Done>
bool until(Explorer& explorer, MechanismController& controller, Done done) {
  for (int i = 0; i < 2000; ++i) {
    explorer.frame(i * 0.02);
    controller.frame(true, false);
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace

TEST_CASE("swaps: a table of heads in the fewest edits, and back") {
  const ModelDims dims{3, 2, 2, 4, 8, 16, 10};
  const Intervention hot{{1, 0}, SetTemperature{2}};
  MechanismSwaps all;
  for (int layer = 0; layer < 3; ++layer)
    for (int head = 0; head < 2; ++head) all[{layer, head}] = "linear map=elu normalise=sum";
  const auto words = [](const std::vector<Intervention>& edits) {
    std::string text;
    for (const Intervention& edit : edits) text += describe(edit) + "; ";
    return text;
  };
  auto edits = with_swaps({hot}, all, dims);
  CHECK(words(edits) == "1.0: temperature 2; *: mechanism linear map=elu normalise=sum; ");
  CHECK(swaps_of(edits, dims) == all);
  auto some = all;
  some.erase({1, 1});
  edits = with_swaps(edits, some, dims);
  CHECK(words(edits) ==
        "1.0: temperature 2; 0.*: mechanism linear map=elu normalise=sum; 1.0: mechanism linear map=elu normalise=sum; "
        "2.*: mechanism linear map=elu normalise=sum; ");
  CHECK(swaps_of(edits, dims) == some);
  CHECK(with_swaps(edits, {}, dims) == std::vector<Intervention>{hot});
  // Those that are off, or reach some positions only, are left alone.
  const std::vector<Intervention> others{{{0, 0}, SwapMechanism{"relu"}, false},
                                         {{0, 0, PositionRange{1, 2}}, SwapMechanism{"relu"}}};
  CHECK(swaps_of(others, dims).empty());
  CHECK(with_swaps(others, {}, dims) == others);
}

TEST_CASE("the page of a head: softmax on its q, k, v is the pattern of the run, also where another edit hides it") {
  Backend backend(1);
  const auto folder = headscope::testing::source_dir() / "assets/examples/induction";
  const LoadedModel model = load_model(folder, backend);
  RunRequest request;
  request.model = folder;
  request.text = "Mr and Mrs Quill of Fox Hythe";
  request.capture.maps = MapStorage::dense;
  const auto trace = run(model, request, Ctx{backend});
  const MechanismInput in = head_input(model, request, {1, 0}, Ctx{backend});
  const Mechanism& softmax = *find_mechanism("softmax");
  CHECK(gap(softmax.run(in, softmax.usual(), Detail::weights).weights, trace->map({1, 0}).to_dense()) < 1e-5);
  request.edits = {parse_intervention("*: mechanism linear", "test"), parse_intervention("1.0: mask window 3", "test")};
  const MechanismInput edited = head_input(model, request, {1, 0}, Ctx{backend});
  CHECK(edited.rule->describe() == "window 3");
  CHECK(gap(edited.q, in.q) > 0);  // layer 0 runs linear attention still
  CHECK_THROWS_AS(head_input(model, request, {7, 0}, Ctx{backend}), Error);
}

TEST_CASE("of an encoder-decoder the heads of each stack, also between edits of the others: softmax is their pattern") {
  Backend backend(1);
  for (const char* name : {"models/tiny-translate", "tests/reference/encoder-decoders/t5"}) {
    CAPTURE(name);
    const LoadedModel model = load_model(headscope::testing::source_dir() / name, backend);
    RunRequest request;
    request.source_ids = std::vector<std::int32_t>{5, 9, 7, 11, 8, 3};
    request.ids = {4, 12, 9, 6};
    request.capture.maps = MapStorage::dense;
    request.edits = {parse_intervention("enc.0.*: temperature 2", "test"),
                     parse_intervention("dec.1.0: mechanism linear", "test")};
    const auto trace = run(model, request, Ctx{backend});
    const Mechanism& softmax = *find_mechanism("softmax");
    for (const Stack stack : {Stack::encoder, Stack::decoder, Stack::cross})
      for (const AttentionMap& map : trace->part(stack)->maps) {
        CAPTURE(static_cast<int>(stack));
        CAPTURE(to_string(map.id()));
        std::shared_ptr<const Trace> part;
        const MechanismInput in = head_input(model, request, map.id(), Ctx{backend}, &part, stack);
        CHECK(part->queries().size() == trace->part(stack)->queries().size());
        if (stack == Stack::decoder && map.id() == HeadId{1, 0}) continue;  // runs another mechanism
        CHECK(gap(softmax.run(in, softmax.usual(), Detail::weights).weights, map.to_dense()) < 1e-5);
      }
  }
}

TEST_CASE("the desk: a page for what is chosen, an edit of the model that follows the parameters, one step to undo") {
  Explorer explorer({1, nullptr});
  explorer.files.open_example("induction");
  MechanismController controller(explorer.jobs, explorer.editor, explorer.run);
  REQUIRE(until(explorer, controller, [&] { return controller.current(); }));
  explorer.editor.select({1, 0});
  controller.source().first = 1000;  // more than there are
  controller.changed_source();
  REQUIRE(until(explorer, controller, [&] { return controller.current() && controller.page()->head == HeadId{1, 0}; }));
  CHECK(controller.page()->choice.mechanism->id == "linear");
  CHECK(controller.page()->input.n() == static_cast<Index>(explorer.results().run->trace->tokens.size()));
  CHECK(controller.page()->recurrence);
  REQUIRE(controller.page()->recurrent_gap);
  CHECK(*controller.page()->recurrent_gap < 1e-4);
  REQUIRE(until(explorer, controller, [&] { return controller.times() && !controller.timing().running(); }));
  CHECK(controller.times()->softmax.n.size() > 2);
  CHECK(controller.times()->mechanism.n.size() > 2);
  CHECK(controller.times()->mechanism.theory.size() == controller.times()->mechanism.theory_n.size());

  controller.choose("entmax");
  controller.set_value("alpha", 1);
  REQUIRE(until(explorer, controller,
                [&] { return controller.current() && controller.page()->choice.mechanism->id == "entmax"; }));
  CHECK(controller.page()->comparison.output_error < 1e-5);
  CHECK_FALSE(controller.page()->recurrence);
  CHECK(!controller.page()->no_recurrence.empty());

  controller.swap_in({{1, 0}}, true);
  CHECK(describe(explorer.state().document.edits.at(0)) == "1.0: mechanism entmax alpha=1");
  controller.set_value("alpha", 2);
  CHECK(describe(explorer.state().document.edits.at(0)) == "1.0: mechanism entmax alpha=2");
  REQUIRE(until(explorer, controller, [&] {
    return explorer.results().effect && explorer.results().effect->after == explorer.results().run->trace &&
           !explorer.jobs.busy();
  }));
  CHECK(explorer.results().run->trace->map({1, 0}).stats().max_weight.size() > 0);
  while (explorer.editor.history().can_undo() && !explorer.state().document.edits.empty()) explorer.editor.undo();
  CHECK(explorer.state().document.edits.empty());

  controller.use_example(worked_examples()[0]);
  controller.choose("softmax");
  REQUIRE(until(explorer, controller,
                [&] { return controller.current() && controller.page()->choice.mechanism->id == "softmax"; }));
  CHECK(controller.page()->result.output.at(0, 0) == doctest::Approx(20));
  CHECK(controller.page()->shares);
  CHECK(controller.page()->most_different < 1e-6);
  controller.choose("lightning");  // one query and three keys: it says what it needs, and the last page stays
  REQUIRE(until(explorer, controller, [&] { return !controller.error().empty(); }));
  CHECK(controller.error().find("causal") != std::string::npos);
  CHECK(controller.page()->choice.mechanism->id == "softmax");

  // Back on the head, undo of the example by hand leaves the head on screen.
  controller.source().kind = MechanismSource::Kind::head;
  controller.changed_source();
  explorer.editor.undo();
  CHECK_FALSE(explorer.state().document.by_hand);
  controller.frame(true, false);
  CHECK(controller.source().kind == MechanismSource::Kind::head);
}

TEST_CASE(
    "the page begins with a softer head and the first tokens of a text; a head that is chosen, and more, follow") {
  Explorer explorer({1, nullptr});
  explorer.files.open_example("tiny-gpt2");
  MechanismController controller(explorer.jobs, explorer.editor, explorer.run);
  REQUIRE(until(explorer, controller,
                [&] { return explorer.results().facts && explorer.run.softer_head() && controller.current(); }));
  const HeadId soft = *explorer.run.softer_head();
  CHECK(explorer.state().document.selected != soft);  // Explore shows the most telling one
  CHECK(controller.page()->head == soft);
  // The same queries as those of the whole text: what comes later does not reach them.
  const Ctx ctx{*explorer.jobs.backend()};
  const MechanismInput whole = head_input(explorer.results().model, explorer.results().run->request, soft, ctx);
  REQUIRE(controller.page()->input.q.dim(0) == 24);
  CHECK(gap(controller.page()->input.q, whole.q.slice(0, 0, 24)) == 0);
  CHECK(gap(controller.page()->input.v, whole.v.slice(0, 0, 24)) == 0);

  controller.source().first = 50;
  controller.changed_source();
  REQUIRE(until(explorer, controller, [&] { return controller.current() && controller.page()->input.n() == 50; }));
  CHECK(controller.page()->head == soft);
  explorer.editor.select({0, 1});
  REQUIRE(until(explorer, controller, [&] { return controller.current() && controller.page()->head == HeadId{0, 1}; }));
  CHECK_FALSE(explorer.run.softer_head());
}

TEST_CASE("an example's own scale ends with the example; the formula says which scale there is") {
  Explorer explorer({1, nullptr});
  MechanismController controller(explorer.jobs, explorer.editor, explorer.run);
  const auto welcome = std::ranges::find(worked_examples(), std::string_view("welcome"), &WorkedExample::id);
  REQUIRE(welcome != worked_examples().end());
  controller.use_example(*welcome);
  CHECK(input_of(controller.source()).scale == 1);
  CHECK(mechanism::scores_text(input_of(controller.source())) == "Q Kᵀ");
  const std::uint64_t version = controller.numbers_version();
  Tensor q = controller.source().q.copy();
  q.ref(0, 0) = 0.5f;
  controller.set_numbers(q, controller.source().k, controller.source().v);
  CHECK(controller.numbers_version() > version);
  CHECK(controller.source().example.empty());
  CHECK(input_of(controller.source()).scale == 0.5f);  // 1 ÷ √4
  CHECK(mechanism::scores_text(input_of(controller.source())) == "Q Kᵀ ÷ √d");
  MechanismInput hot = input_of(controller.source());
  hot.scale = 0.25f;
  CHECK(mechanism::scores_text(hot) == "0.25 · Q Kᵀ");
}

TEST_CASE("what a page's pictures need to know of its weights") {
  const auto page = [](const char* spec) {
    return page_of(report_on(parse_mechanism(spec), headscope::testing::random_head(6, 6, 4, 4, "causal")),
                   {.source = MechanismSource::Kind::random});
  };
  CHECK(page("entmax alpha=1.5")->shares);
  const auto delta = page("delta");
  CHECK_FALSE(delta->shares);  // signed
  double most = 0;
  for (Index i = 0; i < 6; ++i)
    for (Index j = 0; j <= i; ++j)
      most = std::max(most, std::abs(static_cast<double>(delta->result.weights.at(i, j)) -
                                     static_cast<double>(delta->comparison.reference.weights.at(i, j))));
  CHECK(delta->most_different == doctest::Approx(most));
}

TEST_CASE("the cell whose arithmetic a page opens with, and what its positions are called") {
  const auto page = [](const char* spec, const WorkedExample& example) {
    MechanismOrigin from{.source = MechanismSource::Kind::hand};
    from.example = example.id;
    return page_of(report_on(parse_mechanism(spec), example.input()), from);
  };
  const auto example = [](std::string_view id) {
    for (const WorkedExample& each : worked_examples())
      if (each.id == id) return each;
    throw std::runtime_error("no such example");
  };
  // Few keys: the output, whose whole sum can be read.
  const auto one = page("softmax", example("one-query"));
  CHECK(telling_cell(*one) == MechanismCell{"output", 0, 0});
  CHECK(one->names.queries == std::vector<std::string>{"q"});
  CHECK(one->names.keys == std::vector<std::string>{"k₁", "k₂", "k₃"});
  CHECK(one->names.of(MechanismAxis::key, 1, 2) == std::vector<std::string>{"k₂", "k₃"});
  CHECK(one->names.of(MechanismAxis::key, 2, 2).empty());
  CHECK(one->names.of(MechanismAxis::dimension, 0, 1).empty());
  // Many keys: the largest weight of the last row.
  const auto many =
      page_of(report_on(parse_mechanism("softmax"), headscope::testing::random_head(9, 9, 4, 4, "causal")),
              {.source = MechanismSource::Kind::random});
  Index best = 0;
  for (Index j = 1; j < 9; ++j)
    if (many->result.weights.at(8, j) > many->result.weights.at(8, best)) best = j;
  CHECK(telling_cell(*many) == MechanismCell{"weights", 8, best});
  CHECK(!telling_cell(
      *page_of(report_on(parse_mechanism("dispersion"), headscope::testing::random_head(3, 3, 2, 2, "full")),
               {.source = MechanismSource::Kind::random})));
}

TEST_CASE("cross-attention asks another text: its keys and values, its words, as many queries as before") {
  Explorer explorer({1, nullptr});
  explorer.files.open_example("tiny-gpt2");
  MechanismController controller(explorer.jobs, explorer.editor, explorer.run);
  controller.choose("cross");
  controller.source().other = "Anna sold pies";
  controller.changed_source();
  REQUIRE(until(explorer, controller, [&] {
    return controller.current() && explorer.results().facts && controller.page()->input.two_texts;
  }));
  const MechanismPage& page = *controller.page();
  RunRequest request = explorer.results().run->request;
  const Ctx ctx{*explorer.jobs.backend()};
  const MechanismInput open = head_input(explorer.results().model, request, page.head, ctx);
  request.ids.clear();
  request.text = "Anna sold pies";
  std::shared_ptr<const Trace> other;
  const MechanismInput asked = head_input(explorer.results().model, request, page.head, ctx, &other);
  CHECK(page.input.n() == 24);
  CHECK(page.input.m() == asked.m());
  CHECK(gap(page.input.q, open.q.slice(0, 0, 24)) == 0);
  CHECK(gap(page.input.k, asked.k) == 0);
  CHECK(gap(page.input.v, asked.v) == 0);
  CHECK(page.names.keys.back() == other->tokens.back().label);
  CHECK(page.names.queries.size() == 24);
  const Tensor& weights = headscope::testing::step_of(page.result, "weights").value;
  CHECK(weights.shape() == Shape({24, asked.m()}));  // nothing is cut, nothing hidden
  CHECK(weights.at(0, asked.m() - 1) > 0);
}

TEST_CASE(
    "a head's own weights: X W + b are its queries, keys and values; all heads' z through W_O is what is written") {
  Backend backend(1);
  const auto folder = headscope::testing::source_dir() / "models/tiny-gpt2";
  const LoadedModel model = load_model(folder, backend);
  RunRequest request;
  request.model = folder;
  request.text = "In the village there lived Anna and her cousin Ben.";
  request.capture.sites = {SiteKind::attn_out};
  const auto trace = run(model, request, Ctx{backend});
  for (const HeadId head : {HeadId{0, 0}, HeadId{2, 3}}) {
    CAPTURE(to_string(head));
    MechanismInput in = head_input(model, request, head, Ctx{backend});
    in.projections = head_projections(model, request, head, Ctx{backend});
    REQUIRE(in.projections);
    const MechanismResult seen =
        headscope::testing::run("projections", in, Detail::steps);  // no rotation: Q and K as the head has them
    CHECK(gap(headscope::testing::step_of(seen, "q").value, in.q) < 1e-4);
    CHECK(gap(headscope::testing::step_of(seen, "k").value, in.k) < 1e-4);
    CHECK(gap(headscope::testing::step_of(seen, "v").value, in.v) < 1e-4);
    const Mechanism& softmax = *find_mechanism("softmax");
    const MechanismResult plain = softmax.run(in, softmax.usual(), Detail::weights);
    CHECK(gap(headscope::testing::step_of(seen, "weights").value, plain.weights) < 1e-4);
    CHECK(gap(headscope::testing::step_of(seen, "output").value, plain.output) < 1e-4);

    const MechanismResult layer = headscope::testing::run("multi-head", in, Detail::steps);
    const auto heads = static_cast<Index>(in.layer->q.size());
    CHECK(layer.facts[1].value == std::to_string(heads) + " of width " + std::to_string(in.d()));
    CHECK(gap(headscope::testing::step_of(layer, "head-" + std::to_string(head.head)).value, plain.weights) < 1e-5);
    const Tensor bias = model.model->weights().blocks.at(static_cast<std::size_t>(head.layer)).o_bias.packed();
    const Tensor& written = trace->sites.at({SiteKind::attn_out, head.layer});
    for (const char* way : {"at-once", "sum"}) {
      Tensor with_bias = headscope::testing::step_of(layer, way).value.copy();
      for (Index i = 0; i < with_bias.dim(0); ++i)
        for (Index c = 0; c < with_bias.dim(1); ++c) with_bias.ref(i, c) += bias.at(c);
      CHECK(gap(with_bias, written) < 1e-4);
    }
  }
}

}  // namespace headscope::mechanism_controller_test
