// Every cell of a sweep is one single run with its edits; sweeps stop and go on without losing or changing anything.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "core/analysis/activation_patching.h"
#include "core/analysis/head_ablation.h"
#include "core/analysis/head_circuit.h"
#include "core/analysis/temperature_sweep.h"
#include "core/base/file.h"
#include "core/edits/ablate_edit.h"
#include "core/edits/patch_edit.h"
#include "core/edits/switch_off_edit.h"
#include "core/edits/temperature_edit.h"
#include "core/metrics/metric.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "core/train/parameters.h"
#include "tests/support/paths.h"

namespace headscope::sweep_test {

using doctest::Approx;
using testing::reference;
using testing::source_dir;

namespace {

const char* const text_a = "Mr and Mrs Quill of Fox Hythe kept bees. Now Mr and Mrs Qu";
const char* const text_b = "Mr and Mrs Quoll of Fox Hythe kept bees. Now Mr and Mrs Qu";

std::filesystem::path example() {
  return source_dir() / "assets" / "examples" / "induction";
}

/// A model of random weights on ids, or the one made by hand on a text.
struct Bench {
  explicit Bench(const std::filesystem::path& folder) : loaded(load_model(folder, backend)) {
    request.model = folder;
    if (folder == example())
      request.text = text_a;
    else
      request.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2};
  }
  std::shared_ptr<const Trace> whole(const std::vector<Intervention>& edits) {
    RunRequest edited = request;
    edited.edits.insert(edited.edits.end(), edits.begin(), edits.end());
    return run(loaded, edited, ctx);
  }
  std::shared_ptr<const Trace> of_text(const std::string& text) {
    RunRequest other = request;
    other.text = text;
    return run(loaded, other, ctx);
  }
  Backend backend{1};
  Ctx ctx{backend};
  LoadedModel loaded;
  RunRequest request;
};

double difference(const Trace& trace, const AnswerPair& answers) {
  const Index last = trace.logits.dim(0) - 1;
  return static_cast<double>(trace.logits.at(last, answers.right)) - trace.logits.at(last, answers.wrong);
}

template <class S>
auto finished(S& sweep, const Ctx& ctx) {
  while (!sweep.finished()) sweep.step(ctx);
  CHECK(sweep.done() == sweep.total());
  CHECK(sweep.share() == Approx(1));
  return sweep.result();
}

}  // namespace

TEST_CASE("a head's effect in a sweep is that of one run without it") {
  for (const char* name : {"gpt2-random", "llama-gqa"})
    for (const Ablate& by : {Ablate{Ablate::By::zero, 1}, Ablate{Ablate::By::mean, 1},
                             Ablate{Ablate::By::mean, 1, true}, Ablate{Ablate::By::resample, 7}}) {
      CAPTURE(name);
      Bench bench(reference(name));
      bench.request.edits = {{{0, 0}, SetTemperature{2}}};  // what is edited already stays
      HeadAblationSweep sweep(bench.loaded, {bench.request, by, {}});
      const auto result = finished(sweep, bench.ctx);
      const auto before = bench.whole({});
      CHECK(result->before.loss == mean_loss(*before));
      CHECK(result->before.kl == Approx(0));
      const ModelDims& dims = before->model.dims;
      REQUIRE(result->heads.size() == static_cast<std::size_t>(dims.layers * dims.heads));
      for (const auto& head : result->heads) {
        const auto after = bench.whole({{{head.id.layer, head.id.head}, by}});
        CHECK(head.loss_change == mean_loss(*after) - mean_loss(*before));
        CHECK(head.after.kl == next_token_change(*before, *after, 1).kl);
        CHECK(head.logit_difference_change ==
              difference(*after, result->answers) - difference(*before, result->answers));
      }
    }
}

TEST_CASE("all heads of a layer taken out together are its attention output removed") {
  Bench bench(reference("llama-gqa"));  // whose output projection has no bias, which ablated heads would leave
  EditProbe probe(bench.loaded, bench.request, true, bench.ctx);
  for (int layer = 0; layer < probe.layers(); ++layer) {
    std::vector<Intervention> heads;
    for (int head = 0; head < probe.before()->model.dims.heads; ++head) heads.push_back({{layer, head}, Ablate{}});
    const Outcome out = probe.after(heads, bench.ctx);
    const auto off = bench.whole({{{layer, {}}, SwitchOff{SwitchOff::Part::attention}}});
    CHECK(out.loss == Approx(mean_loss(*off)).epsilon(1e-9));
    CHECK(out.loss != Approx(mean_loss(*probe.before())).epsilon(1e-6));
  }
}

TEST_CASE("a probe that has moved on gives the same numbers as one that has not") {
  Bench bench(reference("gpt2-random"));
  EditProbe still(bench.loaded, bench.request, true, bench.ctx), moved = still;
  const std::vector<Intervention> first{{{0, 1}, Ablate{}}}, both{{{0, 1}, Ablate{}}, {{1, 2}, Ablate{}}};
  moved.move_to(first, bench.ctx);
  for (const auto& edits : {first, both, std::vector<Intervention>{}}) {
    CHECK(still.after(edits, bench.ctx).loss == moved.after(edits, bench.ctx).loss);
    CHECK(still.after(edits, bench.ctx).kl == moved.after(edits, bench.ctx).kl);
  }
}

TEST_CASE("everything patched from text B is text B") {
  Bench bench(example());
  const auto b = bench.of_text(text_b);
  EditProbe probe(bench.loaded, bench.request, true, bench.ctx);
  const std::vector<Intervention> all{{{0, {}}, Patch{Patch::Align::start, SiteKind::resid_pre, text_b}}};
  probe.know_sources(all, bench.ctx);
  const auto patched = probe.run(all, bench.ctx);
  REQUIRE(patched->logits.shape() == b->logits.shape());
  CHECK(std::memcmp(patched->logits.packed().data(), b->logits.packed().data(), b->logits.bytes()) == 0);
}

TEST_CASE("patching by position: the one token that differs carries all, at the end the last position does") {
  Bench bench(example());
  PatchingRequest request{bench.request.model, text_a, text_b, {}, SiteKind::resid_pre, Patch::Align::tokens, {}};
  PatchingSweep sweep(bench.loaded, request);
  const auto result = finished(sweep, bench.ctx);
  const auto a = bench.of_text(text_a), b = bench.of_text(text_b);
  CHECK(result->clean_difference == difference(*a, result->answers));
  CHECK(result->corrupted_difference == difference(*b, result->answers));
  CHECK(bench.loaded.tokenizer->token(result->answers.right).bytes == "i");
  CHECK(bench.loaded.tokenizer->token(result->answers.wrong).bytes == "o");
  REQUIRE(result->columns == static_cast<int>(b->tokens.size()));
  for (int position = 0; position < result->columns; ++position) {
    CAPTURE(position);
    CHECK(result->partner[static_cast<std::size_t>(position)] == position);
    CHECK(result->recovered(static_cast<std::size_t>(position)) == (position == 13 ? Approx(1) : Approx(0)));
  }
  // One cell in the middle against a run by itself.
  RunRequest by_hand = bench.request;
  by_hand.text = text_b;
  by_hand.edits = {{{1, {}, PositionRange{13, 13}}, Patch{Patch::Align::tokens, SiteKind::resid_pre, text_a}}};
  CHECK(result->difference[static_cast<std::size_t>(result->columns + 13)] ==
        difference(*run(bench.loaded, by_hand, bench.ctx), result->answers));

  request.site = SiteKind::resid_post;
  PatchingSweep last(bench.loaded, request);
  const auto post = finished(last, bench.ctx);
  for (int position = 0; position < post->columns; ++position)
    CHECK(post->recovered(static_cast<std::size_t>((post->rows - 1) * post->columns + position)) ==
          (position == post->columns - 1 ? Approx(1) : Approx(0)));
}

TEST_CASE("patching by head finds the induction head in what heads read, not in where they look") {
  Bench bench(example());
  PatchingRequest request{bench.request.model, text_a, text_b, {}, SiteKind::z, Patch::Align::tokens, {}};
  const auto cell_of = [&](const Patching& result, int layer, int head) {
    return result.recovered(static_cast<std::size_t>(layer * result.columns + head));
  };
  PatchingSweep z(bench.loaded, request);
  const auto of_z = finished(z, bench.ctx);
  CHECK(of_z->columns == 4);
  CHECK(cell_of(*of_z, 1, 0) > 0.9);
  CHECK(std::abs(cell_of(*of_z, 1, 1)) < 0.1);
  request.site = SiteKind::pattern;
  PatchingSweep pattern(bench.loaded, request);
  CHECK(std::abs(cell_of(*finished(pattern, bench.ctx), 1, 0)) < 0.1);
}

TEST_CASE("positions without a partner have no value, and what cannot be patched is refused") {
  Bench bench(example());
  PatchingRequest request{bench.request.model, text_a, std::string(text_b) + "i", {}, SiteKind::attn_out,
                          Patch::Align::start, {}};
  PatchingSweep longer(bench.loaded, request);
  const auto result = finished(longer, bench.ctx);
  CHECK(result->partner.back() == -1);
  CHECK(std::isnan(result->difference[static_cast<std::size_t>(result->columns - 1)]));
  CHECK_FALSE(std::isnan(result->difference[static_cast<std::size_t>(result->columns - 2)]));

  const auto refused = [&](PatchingRequest wrong, const char* where) {
    PatchingSweep sweep(bench.loaded, std::move(wrong));
    try {
      sweep.step(bench.ctx);
      FAIL_CHECK("not refused: " << where);
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find(where) != std::string::npos);
    }
    CHECK(sweep.result() == nullptr);
  };
  request.corrupted = text_a;
  refused(request, "the same tokens");
  request.corrupted = text_b;
  request.site = SiteKind::logits;
  refused(request, "site");
  request.site = SiteKind::z;
  request.answers = AnswerPair{5, 5};
  refused(request, "logit difference");
}

TEST_CASE("temperatures of a hybrid are those of the heads that attend") {
  Bench bench(reference("families/qwen3_5_text"));
  TemperatureSweeper sweep(bench.loaded, {bench.request, {0.5, 1}});
  const auto result = finished(sweep, bench.ctx);
  const ModelDims& dims = result->before_trace->model.dims;
  const auto entropy = evaluate(metric("entropy"), *bench.whole({{{}, SetTemperature{0.5}}}));
  double nats = 0, count = 0;
  for (std::size_t i = 0; i < result->heads.size(); ++i) {
    const bool attends = dims.attends(static_cast<int>(i) / dims.heads);
    CHECK(result->heads[i].size() == (attends ? 2 : 0));
    if (!attends) continue;
    CHECK(result->heads[i][1].loss == result->loss_before);
    CHECK(result->heads[i][0].entropy < result->heads[i][1].entropy);
    nats += entropy[i], ++count;
  }
  CHECK(count == dims.heads);
  CHECK(result->all[0].entropy == Approx(nats / count));
  CHECK(result->mean().size() == 2);
}

TEST_CASE("temperatures: 1 is the model as it is, every point is one run, heads are alone in their curve") {
  Bench bench(reference("gpt2-random"));
  TemperatureSweeper sweep(bench.loaded, {bench.request, {0.5, 1, 4}});
  const auto result = finished(sweep, bench.ctx);
  const auto before = bench.whole({});
  const auto entropy = evaluate(metric("entropy"), *before);
  const ModelDims& dims = before->model.dims;
  REQUIRE(result->heads.size() == entropy.size());
  for (std::size_t i = 0; i < entropy.size(); ++i) {
    REQUIRE(result->heads[i].size() == 3);
    CHECK(result->heads[i][1].loss == result->loss_before);
    CHECK(result->heads[i][1].entropy == Approx(entropy[i]));
    CHECK(result->heads[i][0].entropy < result->heads[i][1].entropy);
    CHECK(result->heads[i][2].entropy > result->heads[i][1].entropy);
    const int layer = static_cast<int>(i) / dims.heads, head = static_cast<int>(i) % dims.heads;
    const auto hot = bench.whole({{{layer, head}, SetTemperature{4}}});
    CHECK(result->heads[i][2].loss == mean_loss(*hot));
    CHECK(result->heads[i][2].entropy == Approx(evaluate(metric("entropy"), *hot)[i]));
  }
  const auto cold = bench.whole({{{}, SetTemperature{0.5}}});
  CHECK(result->all[0].loss == mean_loss(*cold));
  double mean_loss_hot = 0;
  for (const auto& curve : result->heads) mean_loss_hot += curve[2].loss / static_cast<double>(result->heads.size());
  CHECK(result->mean()[2].loss == Approx(mean_loss_hot));
  for (std::size_t tau = 0; tau < 3; ++tau) {
    double kl = 0, nats = 0;
    for (const auto& curve : result->heads) {
      kl += curve[tau].kl / static_cast<double>(result->heads.size());
      nats += curve[tau].entropy / static_cast<double>(result->heads.size());
    }
    CHECK(result->mean()[tau].kl == Approx(kl));
    CHECK(result->mean()[tau].entropy == Approx(nats));
  }
  CHECK(result->mean()[2].kl > 0);
  // All heads at once: the mean of every head's entropy in one pass, those of the first layer among them.
  const auto cold_entropy = evaluate(metric("entropy"), *cold);
  double nats = 0;
  for (const double each : cold_entropy) nats += each / static_cast<double>(cold_entropy.size());
  CHECK(result->all[0].entropy == Approx(nats));
  CHECK_THROWS_AS(TemperatureSweeper(bench.loaded, {bench.request, {}}), Error);
  CHECK_THROWS_AS(TemperatureSweeper(bench.loaded, {bench.request, {-1}}), Error);
}

TEST_CASE(
    "the share of a sweep is that of the blocks it computes: an edit in layer l asks for those from l on, and one "
    "more") {
  Bench bench(reference("gpt2-random"));
  HeadAblationSweep sweep(bench.loaded, {bench.request, Ablate{}, {}});
  CHECK(sweep.share() == 0);
  sweep.step(bench.ctx);  // the text as it is
  const ModelDims& dims = bench.loaded.model->config().dims;
  double all = 0, done = 0;
  for (int layer = 0; layer < dims.layers; ++layer) all += dims.heads * (1 + dims.layers - layer);
  for (int cell = 0; cell < sweep.total(); ++cell) {
    CHECK(sweep.share() == Approx(done / all));
    sweep.step(bench.ctx);
    done += 1 + dims.layers - cell / dims.heads;
  }
  CHECK(sweep.share() == Approx(1));
}

TEST_CASE("the greedy order of heads: each round takes the head nearest to the whole model's answer") {
  using Method = HeadCircuitRequest::Method;
  Bench bench(example());
  const Ablate mean{Ablate::By::mean, 1};
  for (const Method method : {Method::remove, Method::add}) {
    HeadCircuitSearch search(bench.loaded, {bench.request, mean, method, {}});
    const auto result = finished(search, bench.ctx);
    CHECK(search.total() == 36);
    REQUIRE(result->order.size() == 8);
    REQUIRE(result->complete());
    const auto before = bench.whole({});
    CHECK(result->whole == difference(*before, result->answers));
    CHECK(result->faithfulness_of(8) == 1);
    CHECK(result->faithfulness_of(0) == 0);
    CHECK(result->kept(8).size() == 8);
    CHECK(result->kept(0).empty());
    // Of a search under way, whatever share is known has its heads: all of them from the first.
    for (std::size_t steps = 0; steps < 3; ++steps) {
      HeadCircuit begun = *result;
      begun.order.assign(result->order.begin(), result->order.begin() + static_cast<std::ptrdiff_t>(steps));
      begun.order.shrink_to_fit();
      for (int count = 0; count <= 8; ++count) {
        CAPTURE(count);
        if (std::isnan(begun.faithfulness_of(count))) continue;
        CHECK(begun.kept(count) == result->kept(count));
      }
    }
    // Every round again by hand, with whole passes.
    for (std::size_t round = 0; round < result->order.size(); ++round) {
      const int size = method == Method::remove ? 8 - static_cast<int>(round) : static_cast<int>(round);
      const auto kept = result->kept(size);
      double best = 1e9, best_difference = 0;
      for (int i = 0; i < 8; ++i) {
        const HeadId trial{i / 4, i % 4};
        if (kept.contains(trial) != (method == Method::remove)) continue;
        auto after = kept;
        if (!after.erase(trial)) after.insert(trial);
        std::vector<Intervention> out;
        for (int j = 0; j < 8; ++j)
          if (!after.contains({j / 4, j % 4})) out.push_back({{j / 4, j % 4}, mean});
        const double now = difference(*bench.whole(out), result->answers);
        if (std::abs(now - result->whole) < best) best = std::abs(now - result->whole), best_difference = now;
      }
      CHECK(result->order[round].logit_difference == Approx(best_difference).epsilon(1e-5));
    }
    // The head that was made to answer is in every set that keeps half of the answer.
    const int half = result->fewest(0.5);
    REQUIRE(half > 0);
    CHECK(result->kept(half).contains({1, 0}));
    CHECK(result->faithfulness_of(half) >= 0.5);
    CHECK(half < 8);
    CHECK(result->fewest(1e9) == -1);
    CHECK(result->fewest(0) == 0);
  }
}

TEST_CASE("a circuit that may choose what heads become takes what leaves the least answer without them") {
  const auto searched = [](const std::filesystem::path& folder, const char* text, std::optional<Ablate> ablate) {
    Backend backend(1);
    HeadCircuitRequest request;
    request.run.text = read_file(source_dir() / "assets/examples" / text);
    request.ablate = ablate;
    HeadCircuitSearch search(load_model(folder, backend), request);
    search.step(Ctx{backend});
    return *search.result();
  };
  // Here the mean over a song that everybody sings answers by itself, and more so than the whole model.
  const auto tiny = source_dir() / "models/tiny-gpt2";
  const HeadCircuit asked = searched(tiny, "tiny-gpt2.txt", Ablate{Ablate::By::mean});
  CHECK(asked.none / asked.whole > 1.5);
  CHECK_FALSE(asked.caveats(0.9).empty());
  const HeadCircuit chosen = searched(tiny, "tiny-gpt2.txt", std::nullopt);
  CHECK(chosen.ablate == Ablate{Ablate::By::zero});
  REQUIRE(chosen.baselines.size() == 2);
  CHECK(chosen.baselines[0].first == Ablate{Ablate::By::mean});
  CHECK(chosen.baselines[0].second == asked.none);
  CHECK(chosen.baselines[1].second == chosen.none);
  CHECK(chosen.none == searched(tiny, "tiny-gpt2.txt", Ablate{Ablate::By::zero}).none);
  CHECK(chosen.none / chosen.whole < 0.5);
  CHECK(chosen.caveats(0.9).empty());
  // Where the mean will do, it is the mean, and nothing else is tried.
  const HeadCircuit made = searched(example(), "induction.txt", std::nullopt);
  CHECK(made.ablate == Ablate{Ablate::By::mean});
  CHECK(made.baselines.size() == 1);
}

TEST_CASE("a circuit says when its percentage means little: a baseline that answers by itself, more than the whole") {
  using Step = HeadCircuit::Step;
  HeadCircuit circuit;
  circuit.request.method = HeadCircuitRequest::Method::add;
  circuit.heads = 3;
  circuit.whole = 6.02, circuit.none = 10.18;
  circuit.order = {Step{0, 0, 8.0}, Step{0, 1, 5.96}, Step{0, 2, 6.02}};
  REQUIRE(circuit.fewest(0.9) == 2);
  CHECK(circuit.faithfulness_of(2) == Approx(1.0144).epsilon(1e-3));
  auto words = circuit.caveats(0.9);
  REQUIRE(words.size() == 1);  // and no word on the 101 %, which mean nothing here
  CHECK(words[0].find("With every head out the logit difference is 10.18, beyond the whole model's 6.02") == 0);
  // More than the whole, above a baseline that is one.
  circuit.none = 1;
  circuit.order[0].logit_difference = 3, circuit.order[1].logit_difference = 6.12;
  words = circuit.caveats(0.9);
  REQUIRE(words.size() == 1);
  CHECK(words[0].find("This set keeps 102.0 %, more than all heads together") == 0);
  // Half of the answer is there without any head.
  circuit.none = 4;
  circuit.order = {Step{0, 0, 5.0}, Step{0, 1, 5.9}, Step{0, 2, 6.02}};
  words = circuit.caveats(0.9);
  REQUIRE(words.size() == 1);
  CHECK(words[0].find("66 % of the logit difference is there already; the percentage is of the rest, 2.02 of 6.02") !=
        std::string::npos);
  // Nothing to say, also where the answer is the other one.
  circuit.none = 0.5;
  CHECK(circuit.caveats(0.9).empty());
  circuit.whole = -6.02, circuit.none = 1;
  circuit.order = {Step{0, 0, -3.0}, Step{0, 1, -6.0}, Step{0, 2, -6.02}};
  CHECK(circuit.caveats(0.9).empty());
  circuit.none = -9;
  CHECK(circuit.caveats(0.9)[0].find("beyond the whole model's -6.02") != std::string::npos);
}

TEST_CASE("a sweep that is stopped keeps what it has, and goes on to the same end") {
  Bench bench(example());
  HeadAblationSweep whole(bench.loaded, {bench.request, Ablate{}, {}});
  const auto expected = finished(whole, bench.ctx);
  HeadAblationSweep sweep(bench.loaded, {bench.request, Ablate{}, {}});
  CHECK(sweep.result() == nullptr);
  CHECK(sweep.share() == 0);
  for (int i = 0; i < 4; ++i) sweep.step(bench.ctx);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(sweep.step(Ctx{bench.backend, nullptr, stop.get_token()}), Cancelled);
  const auto part = sweep.result();
  CHECK(part->heads.size() == 3);
  CHECK(sweep.done() == 3);
  CHECK(sweep.share() > 0);
  CHECK(sweep.share() < 1);
  const auto result = finished(sweep, bench.ctx);
  REQUIRE(result->heads.size() == expected->heads.size());
  for (std::size_t i = 0; i < result->heads.size(); ++i)
    CHECK(result->heads[i].loss_change == expected->heads[i].loss_change);
  CHECK(part->heads.size() == 3);  // what was handed out stays as it was
}

TEST_CASE("an answer is one token, and an error names what it is instead") {
  Bench bench(example());
  CHECK(bench.loaded.tokenizer->token(answer_token(bench.loaded, "i", "answer")).bytes == "i");
  CHECK(bench.loaded.tokenizer->token(answer_token(bench.loaded, "␣", "answer")).bytes == " ");
  CHECK_THROWS_WITH_AS(answer_token(bench.loaded, "Qu", "first answer"),
                       doctest::Contains("first answer: expected one token, found 2: Q · u"), Error);
  CHECK_THROWS_AS(answer_token(bench.loaded, "", "answer"), Error);
  Bench mute(example());
  mute.loaded.tokenizer = nullptr;
  CHECK_THROWS_AS(answer_token(mute.loaded, "i", "answer"), Error);
}

TEST_CASE("answers the other way round: a negative difference is as far from none, and as much of it comes back") {
  Bench bench(example());
  PatchingRequest request{bench.request.model, text_a, text_b, {}, SiteKind::z, Patch::Align::tokens, {}};
  PatchingSweep sweep(bench.loaded, request);
  const auto result = finished(sweep, bench.ctx);
  request.answers = AnswerPair{result->answers.wrong, result->answers.right};
  PatchingSweep turned(bench.loaded, request);
  const auto other = finished(turned, bench.ctx);
  CHECK(other->clean_difference == -result->clean_difference);
  for (std::size_t cell = 0; cell < result->difference.size(); ++cell)
    CHECK(other->recovered(cell) == Approx(result->recovered(cell)).epsilon(1e-4).scale(1e-4));
}

TEST_CASE("of an encoder-decoder the encoder's text is patched where that is asked for, else the target") {
  const auto plain = std::make_shared<Trace>(), two = std::make_shared<Trace>();
  const auto encoder = std::make_shared<Trace>();
  two->encoder = encoder;
  Patching patching;
  for (const Stack stack : {Stack::only, Stack::decoder, Stack::cross}) {
    patching.request.stack = stack;
    CHECK(patching.patched(two) == two);
  }
  patching.request.stack = Stack::encoder;
  CHECK(patching.patched(two) == encoder);
  CHECK(patching.patched(plain) == plain);
}

TEST_CASE("a sweep of one cell is done with its one cell, not before") {
  Backend backend{1};
  ModelConfig config;
  config.name = "one head", config.family = "gpt2";
  config.dims = {.layers = 1, .heads = 1, .kv_heads = 1, .d_head = 4, .d_model = 4, .d_mlp = 0, .vocab = 7};
  config.context = 8;
  LoadedModel loaded;
  loaded.model = Parameters::initial(config, 1).trainable_model(backend);
  RunRequest request;
  request.ids = {1, 2, 3};
  HeadAblationSweep sweep(loaded, {request, Ablate{}, {}});
  CHECK(sweep.share() == 0);
  sweep.step(Ctx{backend});
  CHECK(sweep.total() == 1);
  CHECK(sweep.share() == 0);
  sweep.step(Ctx{backend});
  CHECK(sweep.share() == 1);
}

}  // namespace headscope::sweep_test
