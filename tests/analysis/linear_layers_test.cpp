// Which layers may become linear: every set's loss is one whole run with its edits, the greedy order is that of trying
// everything by hand, in both directions; stopping and going on changes nothing.

#include "core/analysis/linear_layers.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/attention/mechanism.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/mechanism_edit.h"
#include "core/edits/switch_off_edit.h"
#include "core/edits/temperature_edit.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "tests/support/paths.h"

namespace headscope::linear_layers_test {

using doctest::Approx;
using testing::reference;
using testing::source_dir;
using Method = LinearLayersAsked::Method;

namespace {

struct Bench {
  explicit Bench(const std::filesystem::path& folder) : loaded(load_model(folder, backend)) { request.model = folder; }
  std::shared_ptr<const Trace> whole(const std::vector<std::string>& edits) {
    RunRequest edited = request;
    for (const std::string& each : edits) edited.edits.push_back(parse_intervention(each, "test"));
    return run(loaded, edited, ctx);
  }
  /// The loss with softmax in these layers alone, by the words of edits.
  double loss(const std::string& mechanism, const std::vector<int>& kept) {
    std::vector<std::string> edits;
    for (int layer = 0; layer < loaded.model->config().dims.layers; ++layer)
      if (std::ranges::count(kept, layer) == 0) edits.push_back(fmt::format("{}.*: mechanism {}", layer, mechanism));
    return mean_loss(*whole(edits));
  }
  LinearLayersAsked asked(const std::string& mechanism, Method method = Method::restore, int draws = 2) {
    return {request, mechanism, method, draws, 7, Stack::only};
  }
  std::shared_ptr<const LinearLayers> found(const LinearLayersAsked& wanted) {
    LinearLayersSearch search(loaded, wanted);
    while (!search.finished()) search.step(ctx);
    CHECK(search.done() == search.total());
    CHECK(search.share() == Approx(1));
    return search.result();
  }
  Backend backend{1};
  Ctx ctx{backend};
  LoadedModel loaded;
  RunRequest request;
};

/// Four layers, a text of its language.
struct Tiny : Bench {
  Tiny() : Bench(source_dir() / "models" / "tiny-gpt2") {
    request.text = "In the village of Zoziford there lived Anna and her cousin Ben. Every morning, she sold pies.";
  }
};

/// The layers that leave the lowest loss one after another, each tried with whole runs.
std::vector<std::pair<int, double>> by_hand(Bench& bench, const std::string& mechanism, Method method) {
  const int layers = bench.loaded.model->config().dims.layers;
  std::vector<int> kept, left;
  for (int layer = 0; layer < layers; ++layer) left.push_back(layer);
  if (method == Method::replace) kept = left;
  std::vector<std::pair<int, double>> order;
  while (!left.empty()) {
    std::map<double, int> costs;
    for (const int layer : left) {
      std::vector<int> tried = kept;
      if (method == Method::restore)
        tried.push_back(layer);
      else
        std::erase(tried, layer);
      costs.emplace(bench.loss(mechanism, tried), layer);
    }
    const auto [loss, layer] = *costs.begin();
    order.emplace_back(layer, loss);
    std::erase(left, layer);
    if (method == Method::restore)
      kept.push_back(layer);
    else
      std::erase(kept, layer);
  }
  return order;
}

}  // namespace

TEST_CASE("one layer linear, or without attention, is one whole run with that edit; edits of the request stay") {
  for (const char* mechanism : {"linear map=elu normalise=sum", "lightning"}) {
    CAPTURE(mechanism);
    Bench bench(reference("llama-gqa"));
    bench.request.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2};
    bench.request.edits = {parse_intervention("1.1: ablate zero", "test")};
    const auto result = bench.found(bench.asked(mechanism));
    const auto before = bench.whole({});
    CHECK(result->before.loss == mean_loss(*before));
    CHECK_FALSE(result->by_kl);
    REQUIRE(result->alone.size() == 2);
    REQUIRE(result->without.size() == 2);
    for (int layer = 0; layer < 2; ++layer) {
      const auto linear = bench.whole({fmt::format("{}.*: mechanism {}", layer, mechanism)});
      const auto off = bench.whole({fmt::format("{}: switch off attention", layer)});
      CHECK(result->alone[static_cast<std::size_t>(layer)].loss == mean_loss(*linear));
      CHECK(result->alone[static_cast<std::size_t>(layer)].kl == next_token_change(*before, *linear, 1).kl);
      CHECK(result->rise(result->alone[static_cast<std::size_t>(layer)]) == mean_loss(*linear) - mean_loss(*before));
      CHECK(result->without[static_cast<std::size_t>(layer)].loss == mean_loss(*off));
      CHECK(mean_loss(*linear) != mean_loss(*off));
    }
    CHECK(result->none.loss == bench.loss(mechanism, {}));
  }
}

TEST_CASE("the greedy orders are those of trying every layer by hand in every round, in both directions") {
  Tiny bench;
  const std::string mechanism = "linear map=elu normalise=sum";
  for (const Method method : {Method::restore, Method::replace}) {
    const auto result = bench.found(bench.asked(mechanism, method));
    const auto expected = by_hand(bench, mechanism, method);
    REQUIRE(result->layers == 4);
    REQUIRE(result->order.size() == 4);
    CHECK(result->trials.size() == 4 + 3 + 2 + 1);
    for (std::size_t i = 0; i < 4; ++i) {
      CAPTURE(i);
      CHECK(result->order[i].layer == expected[i].first);
      CHECK(result->order[i].outcome.loss == Approx(expected[i].second).epsilon(1e-9));
    }
    for (const auto& trial : result->trials) {
      std::vector<int> kept = result->kept_layers(method == Method::restore ? trial.round : 4 - trial.round);
      if (method == Method::restore)
        kept.push_back(trial.layer);
      else
        std::erase(kept, trial.layer);
      CHECK(trial.outcome.loss == Approx(bench.loss(mechanism, kept)).epsilon(1e-9));
    }
    // The curve by numbers of layers, whichever way it was walked: both ends and the sets between.
    CHECK(result->greedy(4) == result->before.loss);
    CHECK(result->greedy(0) == result->none.loss);
    for (int kept = 0; kept <= 4; ++kept) {
      const std::vector<int> set = result->kept_layers(kept);
      CHECK(static_cast<int>(set.size()) == kept);
      CHECK(std::ranges::is_sorted(set));
      CHECK(result->greedy(kept) == Approx(bench.loss(mechanism, set)).epsilon(1e-9));
    }
  }
}

TEST_CASE("evenly spaced layers are the last of equal stretches, random ones the first of an order; both whole runs") {
  CHECK(evenly_spaced_layers(8, 1) == std::vector<int>{7});
  CHECK(evenly_spaced_layers(8, 2) == std::vector<int>{3, 7});
  CHECK(evenly_spaced_layers(16, 2) == std::vector<int>{7, 15});  // as MiniMax-01's: the eighth of every eight
  CHECK(evenly_spaced_layers(5, 2) == std::vector<int>{1, 4});
  CHECK(evenly_spaced_layers(5, 5) == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(evenly_spaced_layers(5, 0).empty());
  Tiny bench;
  const std::string mechanism = "relu";
  const auto result = bench.found(bench.asked(mechanism));
  REQUIRE(result->even.size() == 3);
  REQUIRE(result->drawn.size() == 2);
  CHECK(result->drawn_orders[0] != result->drawn_orders[1]);
  for (int kept = 1; kept < 4; ++kept) {
    CHECK(result->evenly(kept) == Approx(bench.loss(mechanism, evenly_spaced_layers(4, kept))).epsilon(1e-9));
    for (std::size_t draw = 0; draw < 2; ++draw) {
      const std::vector<int>& order = result->drawn_orders[draw];
      CHECK(std::ranges::is_permutation(order, std::vector<int>{0, 1, 2, 3}));
      CHECK(result->drawn[draw][static_cast<std::size_t>(kept - 1)].loss ==
            Approx(bench.loss(mechanism, {order.begin(), order.begin() + kept})).epsilon(1e-9));
    }
  }
}

TEST_CASE("the fewest layers within what is allowed, and the sentence about them") {
  LinearLayers found;
  found.layers = 6;
  const auto outcome = [](double loss) { return Outcome{loss, 0, 0}; };
  found.before = outcome(1);
  found.none = outcome(5);
  found.order = {{4, outcome(2)},    {1, outcome(1.25)}, {5, outcome(1.125)},
                 {0, outcome(1.25)}, {2, outcome(1)},    {3, outcome(1)}};
  for (const double loss : {4.0, 3.0, 1.5, 1.25, 1.0625}) found.even.push_back(outcome(loss));
  CHECK(found.fewest(0.25) == 2);
  CHECK(found.fewest(0.2) == 3);
  CHECK(found.fewest(0.1) == 5);
  CHECK(found.fewest(4) == 0);
  CHECK(found.fewest_evenly(0.25) == 4);
  CHECK(found.kept_layers(2) == std::vector<int>{1, 4});
  CHECK(found.kept_layers(5) == std::vector<int>{0, 1, 2, 4, 5});
  CHECK(found.finding(0.25) ==
        "4 of 6 layers may become linear, if layers 1 and 4 keep softmax: loss 1.000 → 1.250 nats. Evenly spaced, 4 "
        "have to keep it.");
  CHECK(found.finding(1.25) ==
        "5 of 6 layers may become linear, if layer 4 keeps softmax: loss 1.000 → 2.000 nats. Evenly spaced, 3 have to "
        "keep it.");
  CHECK(found.finding(0.1) ==
        "1 of 6 layers may become linear, if layers 0–2, 4 and 5 keep softmax: loss 1.000 → 1.000 nats.");
  CHECK(found.finding(4) == "Every layer may become linear: loss 1.000 → 5.000 nats.");
  // The other way: layers in the order in which they became linear.
  found.asked.method = Method::replace;
  found.order = {{3, outcome(1.5)}, {2, outcome(1.75)}, {0, outcome(2)},
                 {5, outcome(3)},   {1, outcome(4)},    {4, outcome(5)}};
  CHECK(found.kept_layers(5) == std::vector<int>{0, 1, 2, 4, 5});
  CHECK(found.kept_layers(1) == std::vector<int>{4});
  CHECK(found.greedy(5) == 1.5);
  CHECK(found.greedy(1) == 4);
  for (const double loss : {2.0, 1.75, 1.4375, 1.5, 3.0, 4.0}) found.alone.push_back(outcome(loss));
  CHECK(found.finding(0.45) ==
        "1 of 6 layers may become linear, layer 2, which the greedy search missed: loss 1.000 → 1.438 nats. Evenly "
        "spaced, 4 are enough: the greedy search missed that.");
  CHECK(found.finding(0.25) ==
        "No layer may become linear: the least that one costs is 0.438 nats (layer 2). Evenly spaced, 4 are enough: "
        "the greedy search missed that.");
  // Not known yet: nothing is claimed.
  CHECK(found.fewest(-1) == -1);
  CHECK(found.finding(-1).empty());
  CHECK(found.finding(std::numeric_limits<double>::quiet_NaN()).empty());
  found.order.resize(3);
  CHECK(std::isnan(found.greedy(1)));
  CHECK(found.finding(0.25).empty());
}

TEST_CASE("the sentence says what becomes of the answer, which is in no loss of the text") {
  LinearLayers found;
  found.layers = 2;
  found.before = {{1, 0, 0}, 7};
  found.none = {{4, 2, 0}, 9};
  found.order = {{1, {{1.0625, 3, 0}, 8}}, {0, {{1, 0, 0}, 7}}};
  found.even = {{{2, 0.5, 0}, 7}};
  const auto name = [](std::int32_t id) { return id == 7 ? "green" : "black"; };
  CHECK(found.finding(0.1, name) ==
        "1 of 2 layers may become linear, if layer 1 keeps softmax: loss 1.000 → 1.062 nats, but the answer changes: "
        "green → black, KL 3.000 nats. Evenly spaced, all have to keep it.");
  CHECK(found.finding(0.1).find(", but the answer changes, KL 3.000 nats.") != std::string::npos);
  found.order[0].outcome.answer = 7;
  CHECK(found.finding(0.1, name).find(", and the answer stays green, KL 3.000 nats.") != std::string::npos);
  // Held against the answer, the loss stands beside it.
  found.by_kl = true;
  CHECK(found.finding(2.5, name) ==
        "Every layer may become linear: KL of the answer 0.000 → 2.000 nats, but the answer changes: green → black; "
        "loss of the text 1.000 → 4.000 nats.");
}

TEST_CASE("where no token sees more than one key there is nothing to tell") {
  Tiny bench;
  bench.request.text.clear();
  bench.request.ids = {40};
  auto result = bench.found(bench.asked("linear map=elu normalise=sum"));
  CHECK(result->before_trace->tokens.size() == 1);
  CHECK(result->nothing_to_tell());
  CHECK(result->finding(0.1) == "Nothing to tell: the text has one token, and no layer has keys to choose between.");
  LinearLayers same;
  same.layers = 1;
  same.before = {{1, 0, 0}, 7};
  same.none = {{1, 1e-9, 0}, 7};
  same.order = {{0, {{1, 0, 0}, 7}}};
  CHECK(same.finding(0.1).starts_with("Nothing to tell: with every layer linear the model does the same"));
  same.none = {{1.5, 1e-9, 0}, 7};
  CHECK_FALSE(same.nothing_to_tell());
}

TEST_CASE("what the manual says of everyday-gpt2: the loss hardly moves, the answer after the text does") {
  Bench bench(source_dir() / "models" / "everyday-gpt2");
  std::string text = read_file(source_dir() / "assets/examples/everyday-gpt2.txt");
  while (text.ends_with('\n')) text.pop_back();
  bench.request.text = text;
  const auto name = [&](std::int32_t id) { return bench.loaded.tokenizer->token(id).label; };
  auto wanted = bench.asked("linear map=elu normalise=sum", Method::restore, 0);
  auto result = bench.found(wanted);
  const std::string by_loss = result->finding(0.1, name);
  const std::string manual = read_file(source_dir() / "docs/manual.md");
  CAPTURE(by_loss);
  CHECK(manual.find(by_loss) != std::string::npos);
  const auto with =
      bench.whole({"2: mechanism linear map=elu normalise=sum", "3: mechanism linear map=elu normalise=sum"});
  CHECK(name(top_next(*bench.whole({}), 1)[0].id).ends_with("green"));
  CHECK(name(top_next(*with, 1)[0].id).ends_with("black"));
  CHECK(result->greedy_outcome(2)->kl == Approx(next_token_change(*bench.whole({}), *with, 1).kl));
  // By the answer, other layers go.
  wanted.by = LinearLayersAsked::By::answer;
  result = bench.found(wanted);
  CHECK(result->by_kl);
  const std::string by_answer = result->finding(0.1, name);
  CAPTURE(by_answer);
  CHECK(manual.find(by_answer) != std::string::npos);
  CHECK(result->greedy_outcome(result->fewest(0.1))->answer == result->before.answer);
}

TEST_CASE("a model that is asked nothing by the text is held to KL; one that is asked nothing at all says so") {
  // A picture has no loss, but a class that the model takes it for.
  Bench bench(source_dir() / "models" / "tiny-bert");
  bench.request.text = "In the village of Zoziford there lived Rosa.";
  LinearLayersSearch search(bench.loaded, bench.asked("linear"));
  CHECK_THROWS_AS(search.step(bench.ctx), Error);
  CHECK_THROWS_WITH_AS(LinearLayersSearch(bench.loaded, bench.asked("low-rank-of-nothing")),
                       doctest::Contains("mechanism"), Error);
  // What is not linear stands in for nothing here; the message names what does.
  for (const char* id : {"softmax", "hybrid", "linformer"})
    CHECK_THROWS_WITH_AS(LinearLayersSearch(bench.loaded, bench.asked(id)),
                         doctest::Contains("mechanism: expected one that is linear: linear, "), Error);
  Bench seeing(source_dir() / "models" / "tiny-vit");
  seeing.request.image = source_dir() / "assets" / "examples" / "pictures" / "1-ring.png";
  const auto result = seeing.found(seeing.asked("linear"));
  CHECK(result->by_kl);
  CHECK(result->cost(result->before) == Approx(0));
  CHECK(result->greedy(result->layers) == Approx(0));
  CHECK(result->cost(result->none) == result->none.kl);
  CHECK(result->finding(1e9).starts_with("Every layer may become linear: KL of the answer 0.000 → "));
}

TEST_CASE("mechanisms that are among the edits already are taken away, other edits stay") {
  Tiny bench;
  const std::string temperature = "1.1: temperature 2";
  const double expected = mean_loss(*bench.whole({temperature}));
  for (const char* edit : {"2.*: mechanism linear", "0.1: mechanism lightning", "*: mechanism relu"})
    bench.request.edits.push_back(parse_intervention(edit, "test"));
  bench.request.edits.push_back(parse_intervention(temperature, "test"));
  bench.request.edits.push_back(parse_intervention("1.*@3..5: mechanism relu", "test"));
  CHECK(without_mechanisms(bench.request.edits) ==
        std::vector<Intervention>{bench.request.edits[3], bench.request.edits[4]});
  bench.request.edits.pop_back();
  LinearLayersSearch search(bench.loaded, bench.asked("linear"));
  search.step(bench.ctx);
  CHECK(search.result()->before.loss == expected);
  CHECK(search.result()->asked.run.edits.size() == 1);
}

TEST_CASE("a search that was stopped goes on where it was") {
  Tiny bench;
  const auto wanted = bench.asked("linear", Method::restore, 1);
  const auto whole = bench.found(wanted);
  LinearLayersSearch search(bench.loaded, wanted);
  for (int steps = 0; !search.finished(); ++steps) {
    if (steps % 2 == 1) {
      std::stop_source stop;
      stop.request_stop();
      try {
        search.step(Ctx{bench.backend, nullptr, stop.get_token()});  // one that is known already needs no pass
      } catch (const Cancelled&) {
      }
    }
    if (!search.finished()) search.step(bench.ctx);
  }
  const auto again = search.result();
  REQUIRE(again->order.size() == whole->order.size());
  for (std::size_t i = 0; i < whole->order.size(); ++i) {
    CHECK(again->order[i].layer == whole->order[i].layer);
    CHECK(again->order[i].outcome.loss == Approx(whole->order[i].outcome.loss).epsilon(1e-12));
  }
  CHECK(again->trials.size() == whole->trials.size());
}

TEST_CASE("what a layer may become: no mechanism that keeps keys or grows with the square of the text") {
  const auto causal = linear_mechanisms(), both_ways = linear_mechanisms(false);
  for (const char* id : {"linear", "lightning", "gated", "delta"}) CHECK(std::ranges::count(causal, id) == 1);
  for (const char* id : {"softmax", "flash", "ring", "linformer", "hybrid", "rank", "projections", "cross"})
    CHECK(std::ranges::count(causal, id) == 0);
  CHECK(std::ranges::count(both_ways, "lightning") == 0);
  CHECK(std::ranges::count(both_ways, "linear") == 1);
  // Every one of them can stand in for a layer of a causal model.
  Bench bench(reference("gpt2-random"));
  bench.request.ids = {3, 14, 15, 9, 2, 6, 5, 3};
  for (const std::string& id : causal) {
    CAPTURE(id);
    CHECK(std::isfinite(bench.loss(id, {1})));
  }
}

}  // namespace headscope::linear_layers_test
