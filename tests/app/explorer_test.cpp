// What the explorer computes from a document, in which order, and what stays on screen when something fails.

#include <doctest/doctest.h>

#include <bit>

#include "core/edits/mask_edit.h"
#include "core/tensor/backend.h"
#include "tests/app/explorer_controller.h"

namespace headscope::explorer_test {

using testing::Controller;
using testing::example;
using testing::reference;
using testing::source_dir;
using testing::story;

TEST_CASE("a model and a text lead to a run, the facts of its heads, the selected head in factors, and no effect") {
  Controller controller;
  controller.explorer.run.open_model(example());
  controller.explorer.editor.set_text(story);
  controller.settle();
  CHECK(controller.message() == "");
  REQUIRE(controller.results().run);
  const Trace& trace = *controller.results().run->trace;
  CHECK(trace.text == story);
  CHECK(controller.results().run->next.size() == 20);
  REQUIRE(controller.results().losses);
  CHECK(controller.results().losses->trace.get() == &trace);
  CHECK(controller.results().losses->now.size() == trace.tokens.size() - 1);
  CHECK(controller.results().losses->before.empty());
  REQUIRE(controller.results().facts);
  CHECK(controller.results().facts->trace.get() == &trace);
  CHECK(controller.results().facts->verdicts.size() == trace.maps.size());
  CHECK(controller.results().facts->table.value.size() == trace.maps.size());
  CHECK(controller.results().facts->row({1, 0}) >= 0);
  CHECK(controller.results().facts->row({99, 0}) == -1);
  REQUIRE(controller.results().detail);
  CHECK(controller.results().detail->of_trace.get() == &trace);
  CHECK(controller.results().detail->head == controller.document().selected);
  CHECK(controller.results().detail->map().is_factored());
  CHECK_FALSE(controller.results().effect);
  CHECK(controller.explorer.results().run->trace->milliseconds > 0);
  CHECK(controller.explorer.jobs.status().doing == "");

  // The head that was chosen for the first picture belongs to a class.
  const int row = controller.results().facts->row(controller.document().selected);
  REQUIRE(row >= 0);
  CHECK_FALSE(controller.results().facts->verdicts[static_cast<std::size_t>(row)].empty());
}

TEST_CASE(
    "a temperature makes an effect: the curve's present point, the moved weight and the changed tokens agree with it") {
  Controller controller;
  controller.explorer.run.open_model(reference("gpt2-random"));
  controller.explorer.editor.set_text("to be or not to be");
  controller.explorer.editor.select({1, 2});
  controller.settle();
  REQUIRE(controller.results().detail);
  const double entropy_before = controller.results().detail->entropy;
  const auto plain = controller.results().run->trace;
  const auto curve = controller.results().detail->curve;
  const auto plain_losses = controller.results().current_losses();
  REQUIRE(plain_losses);

  controller.explorer.editor.set_temperature(4);
  controller.settle();
  REQUIRE(controller.results().effect);
  CHECK(controller.results().effect->before == plain);  // not run again
  CHECK(controller.results().effect->after == controller.results().run->trace);
  CHECK(controller.results().effect->change.kl > 0);
  // The losses of every token come after, with the logits of every position, which the trace itself is spared.
  CHECK(controller.results().run->trace->logits.dim(0) == 1);
  const auto losses = controller.results().current_losses();
  REQUIRE(losses);
  CHECK(losses->before == plain_losses->now);
  RunRequest whole = controller.results().run->request;
  whole.capture.all_logits = true;
  Backend here(1);  // the explorer's belongs to its worker
  const auto again = token_losses(*run(controller.results().model, whole, Ctx{here}));
  REQUIRE(again.size() == losses->now.size());
  for (std::size_t i = 0; i < again.size(); ++i) CHECK(losses->now[i] == doctest::Approx(again[i]).epsilon(1e-6));
  CHECK(losses->now != losses->before);
  CHECK(controller.results().detail->temperature == 4);
  CHECK(controller.results().detail->entropy > entropy_before);
  // The curve is over absolute temperatures, so setting one does not move it.
  REQUIRE(controller.results().detail->curve.tau == curve.tau);
  for (std::size_t i = 0; i < curve.tau.size(); ++i)
    CHECK(controller.results().detail->curve.entropy[i] == doctest::Approx(curve.entropy[i]).epsilon(1e-5));
  for (std::size_t i = 0; i < plain->maps.size(); ++i) {
    const bool edited = plain->maps[i].layer() == 1 && plain->maps[i].head() == 2;
    CHECK((controller.results().effect->moved[i] > 0) == edited);  // nothing lies above layer 1
  }

  controller.explorer.editor.undo();
  controller.settle();
  CHECK(controller.document().edits.empty());
  CHECK_FALSE(controller.results().effect);
  CHECK(controller.results().detail->entropy == doctest::Approx(entropy_before));
  controller.explorer.editor.redo();
  controller.settle();
  REQUIRE(controller.results().effect);
  CHECK(controller.results().detail->temperature == 4);
}

namespace {
/// Everything a run recorded and measured, bit for bit.
std::vector<std::uint32_t> bits_of(const Results& results) {
  std::vector<std::uint32_t> bits;
  const auto add = [&](const Tensor& tensor) {
    if (!tensor.defined()) return;
    const Tensor packed = tensor.packed();
    for (Index i = 0; i < packed.size(); ++i) bits.push_back(std::bit_cast<std::uint32_t>(packed.data()[i]));
  };
  const auto add_number = [&](double value) {
    const auto both = std::bit_cast<std::uint64_t>(value);
    bits.push_back(static_cast<std::uint32_t>(both));
    bits.push_back(static_cast<std::uint32_t>(both >> 32));
  };
  const Trace& trace = *results.run->trace;
  add(trace.logits);
  for (const AttentionMap& map : trace.maps) add(map.to_dense());
  for (const auto& [site, tensor] : trace.sites) add(tensor);
  REQUIRE(results.losses->trace == results.run->trace);
  for (const double loss : results.losses->now) add_number(loss);
  for (const NextToken& token : results.run->next) add_number(token.probability);
  REQUIRE(results.facts->trace == results.run->trace);
  for (const auto& row : results.facts->table.value)
    for (const double value : row) add_number(value);
  for (const auto& verdicts : results.facts->verdicts)
    for (const HeadVerdict& verdict : verdicts) add_number(verdict.score);
  REQUIRE(results.detail->of_trace == results.run->trace);
  for (const double entropy : results.detail->curve.entropy) add_number(entropy);
  return bits;
}
}  // namespace

TEST_CASE("undo returns the bit-same trace, redo the bit-same edited one, whatever was edited") {
  for (const char* model : {"gpt2-random", "llama-gqa"}) {
    Controller controller;
    controller.explorer.run.open_model(reference(model));
    controller.explorer.editor.set_ids({3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7});
    controller.explorer.editor.select({1, 1});
    controller.settle();
    std::vector<std::vector<std::uint32_t>> states{bits_of(controller.results())};
    REQUIRE(states[0].size() > 1000);
    const auto edited = [&](const std::function<void()>& edit) {
      controller.explorer.editor.history().close_step();
      edit();
      controller.settle();
      states.push_back(bits_of(controller.results()));
      CHECK(states.back() != states[states.size() - 2]);
    };
    const auto add = [&](const char* words) {
      return [&controller, words] {
        auto edits = controller.document().edits;
        edits.push_back(parse_intervention(words, "test"));
        controller.explorer.editor.set_edits(std::move(edits));
      };
    };
    edited([&] { controller.explorer.editor.set_temperature(0.4); });
    edited([&] {  // a weight that is dragged: many traces on the way, one step
      for (const double weight : {0.1, 0.35, 0.62, 0.9}) {
        controller.explorer.editor.set_weight(7, 2, weight);
        controller.settle();
      }
    });
    edited([&] { controller.explorer.editor.paint_mask(5, 1, 2, false, 12); });
    edited(add("0.0: ablate mean"));
    edited(add("0.1: ablate resample 5"));
    edited(add("1.*: switch off mlp"));
    edited(add("0.1: pattern previous"));
    edited(add("1.1: drop first 2"));
    edited(add("0.0: freeze pattern"));
    edited([&] { controller.explorer.editor.set_ids({1, 2, 3, 4, 1, 2, 3, 4}); });
    for (std::size_t i = states.size() - 1; i-- > 0;) {
      CAPTURE(i);
      controller.explorer.editor.undo();
      controller.settle();
      CHECK(bits_of(controller.results()) == states[i]);
    }
    CHECK(controller.document().edits.empty());
    for (std::size_t i = 1; i < states.size(); ++i) {
      CAPTURE(i);
      controller.explorer.editor.redo();
      controller.settle();
      CHECK(bits_of(controller.results()) == states[i]);
    }
  }
}

TEST_CASE("an effect is measured against an unedited run even when none was on screen before") {
  Controller controller;
  controller.explorer.run.open_model(reference("gpt2-random"));
  controller.explorer.editor.set_edits({{{}, SetMask{"window 1"}}});
  controller.explorer.editor.set_text("to be or not to be");
  controller.settle();
  REQUIRE(controller.results().effect);
  REQUIRE(controller.results().current_losses());
  CHECK(controller.results().current_losses()->before.size() == controller.results().run->trace->tokens.size() - 1);
  CHECK(controller.results().effect->before->map({0, 0}).weight(3, 1) > 0);
  CHECK(controller.results().effect->after->map({0, 0}).weight(3, 1) == 0);
  // Every row keeps its own cell alone: what moved is 1 − the diagonal before.
  const AttentionMap& before = controller.results().effect->before->map({0, 0});
  double moved = 0;
  for (Index i = 0; i < before.n_query(); ++i) moved += 1 - static_cast<double>(before.weight(i, i));
  CHECK(controller.results().effect->moved[0] ==
        doctest::Approx(moved / static_cast<double>(before.n_query())).epsilon(1e-5));
}

TEST_CASE("a failed run shows its error and keeps the last good one; the next good run takes the error away") {
  Controller controller;
  controller.explorer.run.open_model(reference("gpt2-random"));
  controller.explorer.editor.set_text("short");
  controller.settle();
  const auto good = controller.results().run;
  REQUIRE(good);
  controller.explorer.editor.set_edits({{{0, 0}, SetMask{"no such mask"}}});
  controller.settle();
  CHECK(controller.message().find("no such mask") != std::string::npos);
  CHECK(controller.results().run == good);
  controller.explorer.editor.set_edits({});
  controller.explorer.editor.set_text("short again");
  controller.settle();
  CHECK(controller.message() == "");
  CHECK(controller.results().run != good);
}

namespace {
/// Frames that take no time, until there is another run.
void until_next_run(Controller& controller) {
  const auto last = controller.results().run;
  while (controller.results().run == last) controller.explorer.frame(controller.now);
}
}  // namespace

TEST_CASE("what was asked of a run is there where the next one is refused") {
  Controller controller;
  controller.explorer.run.open_model(source_dir() / "models/tiny-llama");
  controller.explorer.editor.set_text(std::string(200, 'x'));
  until_next_run(controller);
  const auto run = controller.results().run;
  controller.explorer.editor.set_text(std::string(2000, 'x'));  // before its heads are measured
  controller.explorer.frame(controller.now);
  controller.settle();
  REQUIRE(controller.explorer.results().too_long);
  CHECK(controller.results().run == run);
  REQUIRE(controller.results().facts);
  CHECK(controller.results().facts->trace == run->trace);
  REQUIRE(controller.results().losses);
  CHECK(controller.results().losses->trace == run->trace);
  REQUIRE(controller.results().detail);
  CHECK(controller.results().detail->of_trace == run->trace);
}

TEST_CASE("while runs come one right after another, numbers follow ten times a second") {
  Controller controller;
  controller.explorer.run.open_model(source_dir() / "models/tiny-llama");
  controller.explorer.editor.set_text(std::string(200, 'x'));
  controller.settle();
  int measured = 0;
  for (int i = 0; i < 40; ++i) {  // a slider in hand, for 0.8 seconds
    const auto before = controller.results().facts;
    controller.now += 0.02;
    controller.explorer.editor.set_edits({{{0, 0}, SetTemperature{1.1 + 0.1 * i}}});
    until_next_run(controller);
    if (controller.results().facts != before) ++measured;
  }
  CHECK(measured >= 6);
  CHECK(measured <= 25);  // each fifth, and what is done before the next comes
  controller.settle();
  CHECK(controller.results().facts->trace == controller.results().run->trace);
}

TEST_CASE("a letter after a while waits for nothing that was asked of the text before it") {
  Controller controller;
  controller.explorer.run.open_model(source_dir() / "models/tiny-llama");
  controller.explorer.editor.set_text(std::string(200, 'x'));
  controller.settle();
  int overtaken = 0;
  for (int i = 0; i < 20; ++i) {
    controller.now += 1;
    controller.explorer.editor.set_text(controller.document().text + "y");
    until_next_run(controller);
    const auto run = controller.results().run;
    CHECK_FALSE(controller.results().current_losses());
    controller.now += 0.15;  // its losses are on their way
    controller.explorer.editor.set_text(controller.document().text + "z");
    controller.explorer.frame(controller.now);
    if (controller.results().losses->trace == run->trace) continue;  // and came before the letter
    ++overtaken;
    while (controller.results().run == run) controller.explorer.frame(controller.now);
    CHECK(controller.results().losses->trace != run->trace);
    controller.settle();
    CHECK(controller.results().current_losses());
  }
  CHECK(overtaken > 0);
}

TEST_CASE("of a text that is too long a part can be kept, the first or the last; undo asks again") {
  Controller controller;
  controller.explorer.run.open_model(reference("gpt2-random"));
  controller.explorer.editor.set_text(std::string(100, 'x') + "yz");  // the context is 48
  controller.settle();
  REQUIRE(controller.explorer.results().too_long);
  CHECK(controller.explorer.results().too_long->context == 48);
  const int tokens = controller.explorer.results().too_long->tokens;
  CHECK(tokens > 48);
  CHECK(controller.message() == "");
  controller.explorer.editor.set_too_long(RunRequest::TooLong::keep_last);
  controller.settle();
  CHECK_FALSE(controller.explorer.results().too_long);
  REQUIRE(controller.results().run);
  CHECK(controller.results().run->trace->tokens.size() == 48);
  CHECK(controller.results().run->trace->tokens.back().end == 102);
  controller.explorer.editor.set_too_long(RunRequest::TooLong::keep_first);
  controller.settle();
  CHECK(controller.results().run->trace->tokens.front().begin == 0);
  controller.explorer.editor.undo();
  controller.explorer.editor.undo();
  controller.settle();
  CHECK(controller.explorer.results().too_long);
  controller.explorer.editor.set_text("short");
  controller.settle();
  CHECK_FALSE(controller.explorer.results().too_long);
}

TEST_CASE("an empty text has nothing to show, and typing again brings everything back") {
  Controller controller;
  controller.explorer.run.open_model(reference("gpt2-random"));
  controller.explorer.editor.set_text("abc");
  controller.settle();
  controller.explorer.editor.set_text("");
  controller.settle();
  CHECK_FALSE(controller.results().run);
  CHECK_FALSE(controller.results().facts);
  CHECK_FALSE(controller.results().detail);
  CHECK(controller.message() == "");
  controller.explorer.editor.set_text("abc");
  controller.settle();
  CHECK(controller.results().run);
  CHECK(controller.results().detail);
}

TEST_CASE("losses of another run are none of the run on screen") {
  Results results;
  auto run = std::make_shared<TracedRun>();
  auto losses = std::make_shared<TextLosses>();
  run->trace = run->whole = std::make_shared<Trace>();
  losses->trace = std::make_shared<Trace>();
  results.run = run;
  results.losses = losses;
  CHECK_FALSE(results.current_losses());
  losses->trace = run->trace;
  CHECK(results.current_losses() == results.losses);
}

}  // namespace headscope::explorer_test
