// A logit of its own in every row's softmax: weights, statistics, maps, gradients and edits beside it.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/attention/masks.h"
#include "core/attention/own_scores.h"
#include "core/attention/rule_edits.h"
#include "core/attention/softmax_attention.h"
#include "core/metrics/temperature_curve.h"
#include "core/model/weights.h"
#include "core/run/run_request.h"
#include "core/trace/row_stats.h"
#include "tests/support/gradient_check.h"
#include "tests/support/paths.h"
#include "tests/support/random_tensor.h"

namespace headscope::learned_sink_test {

using namespace testing;

namespace {

constexpr Index heads = 3, d = 4;

/// What `on` multiplies odd rows' scores by, the sink's too.
class OddRows final : public Tap {
 public:
  explicit OddRows(float factor) : factor_(factor) {}
  HeadRule head_rule(HeadId, HeadRule usual) const override {
    const float factor = factor_;
    return {scaled_rule(
                own_scores(usual.rule, usual), [factor](Index query) { return query % 2 ? factor : 1.0f; }, "odd rows"),
            usual.scale};
  }
  bool wants(Site) const override { return false; }
  Tensor at(Site, const Tensor& value) override { return value; }

 private:
  float factor_;
};

AttentionInput input(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& sinks) {
  AttentionInput in;
  in.q = q, in.k = k, in.v = v, in.sinks = sinks;
  in.rule = causal_rule();
  in.scale = 0.6f;
  return in;
}

/// z of every text, by the definition.
Numbers attention(const std::vector<Index>& lengths, double factor, const std::vector<Numbers>& x) {
  Numbers z(x[0].size());
  Index begin = 0;
  for (const Index n : lengths) {
    const auto at = [&](Index i, Index h, Index e) {
      return static_cast<std::size_t>(((begin + i) * heads + h) * d + e);
    };
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < n; ++i) {
        const double by = i % 2 ? factor : 1;
        Numbers weight;
        double sum = std::exp(by * x[3][static_cast<std::size_t>(h)]);
        for (Index j = 0; j <= i; ++j) {
          double score = 0;
          for (Index e = 0; e < d; ++e) score += x[0][at(i, h, e)] * x[1][at(j, h, e)];
          sum += weight.emplace_back(std::exp(by * 0.6 * score));
        }
        for (Index j = 0; j <= i; ++j)
          for (Index e = 0; e < d; ++e) z[at(i, h, e)] += weight[static_cast<std::size_t>(j)] / sum * x[2][at(j, h, e)];
      }
    begin += n;
  }
  return z;
}

}  // namespace

TEST_CASE("gradients beside a learned sink go to queries, keys, values and the sink itself") {
  for (const std::vector<Index>& lengths : {std::vector<Index>{6}, std::vector<Index>{3, 70, 1}})
    for (const float factor : {1.0f, 2.5f}) {
      Index rows = 0;
      for (const Index n : lengths) rows += n;
      const Tensor q = random_tensor({rows, heads, d}, 1), k = random_tensor({rows, heads, d}, 2),
                   v = random_tensor({rows, heads, d}, 3), sinks = random_tensor({heads}, 4);
      OddRows tap(factor);
      GradientCheck check;
      check.inputs = {q, k, v, sinks};
      check.op = [&](Backend& backend) {
        AttentionInput in = input(q, k, v, sinks);
        in.lengths = lengths;
        return softmax_attention(in, backend, factor == 1 ? nullptr : &tap, {}).z;
      };
      check.definition = [&](const std::vector<Numbers>& x) {
        return attention(lengths, static_cast<double>(factor), x);
      };
      CAPTURE(lengths.size());
      CAPTURE(factor);
      check_gradients(check, 9);
    }
}

TEST_CASE("a row beside a sink by hand: weights, log-sum-exp, entropy, largest weight, with the sink below and above") {
  for (const double sink : {1.0, 13.0, 0.0}) {  // as e^sink; 0 = none
    CAPTURE(sink);
    HeadStatsBuilder builder(1, 2, 1, nullptr, true);
    std::vector<float> scores{0, std::log(2.0f)}, again = scores;
    {
      HeadStatsBuilder::Tile tile(builder, 0);
      tile.softmax(0, {0, 2}, scores, static_cast<float>(std::log(sink)));
    }
    const auto stats = builder.finish();
    const double z = 3 + sink, a = 1 / z, b = 2 / z;
    CHECK(scores[0] == doctest::Approx(a));
    CHECK(scores[1] == doctest::Approx(b));
    CHECK(stats->log_sum_exp[0] == doctest::Approx(std::log(z)));
    CHECK(stats->entropy[0] == doctest::Approx(-a * std::log(a) - b * std::log(b)));
    CHECK(stats->entropy_without_first[0] == doctest::Approx(0));
    CHECK(stats->max_weight[0] == doctest::Approx(b));
    CHECK(stats->max_key[0] == 1);
    CHECK(stats->first[0] == doctest::Approx(a));
    CHECK(stats->column_mass[0] + stats->column_mass[1] == doctest::Approx(3 / z));
    softmax_row(again, static_cast<float>(std::log(sink)));
    CHECK(again[0] == doctest::Approx(a));
    CHECK(again[1] == doctest::Approx(b));
  }
  // A row without keys has no weight to give.
  std::vector<float> nothing{-std::numeric_limits<float>::infinity()};
  softmax_row(nothing, 0);
  CHECK(nothing[0] == 0);
}

TEST_CASE("beside a sink the entropy without key 0 is of the keys alone, also where a window begins behind key 0") {
  for (const double sink : {0.0, 13.0}) {  // as e^sink; 0 = none
    CAPTURE(sink);
    HeadStatsBuilder builder(1, 3, 2, nullptr, true);
    std::vector<float> scores{0, std::log(2.0f)};
    {
      HeadStatsBuilder::Tile tile(builder, 0);
      tile.softmax(0, {1, 3}, scores, static_cast<float>(std::log(sink)));
    }
    const auto stats = builder.finish();
    CHECK(stats->entropy_without_first[0] == doctest::Approx(std::log(3.0) - 2.0 / 3 * std::log(2.0)));
    const Tensor weights = Tensor::from({1, 3}, std::vector<float>{0, scores[0], scores[1]});
    CHECK(stats_of_weights(weights, nullptr, 2)->entropy_without_first[0] ==
          doctest::Approx(stats->entropy_without_first[0]));
  }
}

TEST_CASE("maps beside a sink: factored as dense, rows that sum to what the sink leaves") {
  const Index n = 20;
  const Tensor q = random_tensor({n, heads, d}, 5), k = random_tensor({n, heads, d}, 6),
               v = random_tensor({n, heads, d}, 7), sinks = random_tensor({heads}, 8);
  Backend backend(2);
  std::vector<AttentionMap> maps[2];
  for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
    AttentionInput in = input(q, k, v, sinks);
    in.storage = storage;
    maps[storage == MapStorage::factored] = softmax_attention(in, backend, nullptr, {}).maps;
  }
  for (Index h = 0; h < heads; ++h) {
    const AttentionMap &dense = maps[0][static_cast<std::size_t>(h)], &factored = maps[1][static_cast<std::size_t>(h)];
    CHECK(dense.place().kind == MapKind::probability);
    REQUIRE(factored.is_factored());
    for (Index i = 0; i < n; ++i) {
      double sum = 0;
      for (Index j = 0; j < n; ++j) {
        CHECK(factored.weight(i, j) == doctest::Approx(dense.weight(i, j)).epsilon(1e-5));
        sum += static_cast<double>(dense.weight(i, j));
      }
      CHECK(sum < 1);
      const double share =
          std::exp(static_cast<double>(sinks.at(h)) - factored.stats().log_sum_exp[static_cast<std::size_t>(i)]);
      CHECK(1 - sum == doctest::Approx(share).epsilon(1e-4));
    }
    // The curve of temperatures goes through the entropy of the map itself.
    const double taus[] = {1.0};
    double mean = 0;
    for (const float each : dense.stats().entropy) mean += static_cast<double>(each) / static_cast<double>(n);
    CHECK(temperature_curve(factored, taus).entropy[0] == doctest::Approx(mean).epsilon(1e-5));
    CHECK(temperature_curve(dense, taus).entropy[0] == doctest::Approx(mean).epsilon(1e-4));
  }
}

TEST_CASE("edits beside a sink: a temperature divides its logit too, a weight leaves the others their ratios with it") {
  Backend backend(1);
  const LoadedModel loaded{Model::load(reference("families/gpt_oss"), backend), nullptr};
  RunRequest request;
  request.model = reference("families/gpt_oss");
  request.ids = {3, 17, 8, 21, 40, 3, 17, 9};
  request.capture.maps = MapStorage::factored;
  request.capture.sites = {SiteKind::attn_scores};
  const auto with = [&](const std::string& line) {
    RunRequest own = request;
    if (!line.empty()) own.edits = {parse_intervention(line, "test")};
    return run(loaded, own, Ctx{backend});
  };
  const auto plain = with("");
  const double sink = static_cast<double>(loaded.model->weights().blocks[0].sinks.at(1));
  const AttentionMap before = plain->map({0, 1}), cooled = with("0.1: temperature 0.5")->map({0, 1}),
                     pulled = with("0.1: weight 7 6 0.5")->map({0, 1}), alone = with("0.1: weight 7 6 1")->map({0, 1});
  const Tensor& scores = plain->sites.at({SiteKind::attn_scores, 0});
  double all = std::exp(2 * sink);
  for (Index j = 0; j < 8; ++j) all += std::exp(2 * static_cast<double>(scores.at(1, 7, j)));  // e^−∞ where masked
  for (Index j = 0; j < 8; ++j)
    CHECK(cooled.weight(7, j) ==
          doctest::Approx(std::exp(2 * static_cast<double>(scores.at(1, 7, j))) / all).epsilon(1e-4));
  CHECK(pulled.weight(7, 6) == doctest::Approx(0.5).epsilon(1e-5));
  const double left = 1 - static_cast<double>(before.weight(7, 6));
  for (const Index j : {5, 7})
    CHECK(pulled.weight(7, j) == doctest::Approx(before.weight(7, j) * 0.5 / left).epsilon(1e-4));
  CHECK(alone.weight(7, 6) == doctest::Approx(1));
  CHECK(before.weight(6, 6) == pulled.weight(6, 6));
}

}  // namespace headscope::learned_sink_test
