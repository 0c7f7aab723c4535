#include "core/metrics/rollout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/metrics/maps.h"

namespace headscope::rollout_test {

namespace {
/// Causal rows of random probabilities.
Tensor random_causal(Random& random, Index n) {
  Tensor t = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i) {
    double sum = 0;
    for (Index j = 0; j <= i; ++j)
      sum += static_cast<double>(t.ref(i, j) = static_cast<float>(random.uniform() + 0.01));
    for (Index j = 0; j <= i; ++j) t.ref(i, j) = static_cast<float>(static_cast<double>(t.at(i, j)) / sum);
  }
  return t;
}

Trace trace_of(int layers, int heads, Index n, std::uint64_t seed) {
  Random random(seed);
  Trace trace;
  trace.model.dims = {
      .layers = layers, .heads = heads, .kv_heads = heads, .d_head = 4, .d_model = 8, .d_mlp = 0, .vocab = 10};
  trace.tokens.resize(static_cast<std::size_t>(n));
  for (int layer = 0; layer < layers; ++layer)
    for (int head = 0; head < heads; ++head) {
      const Tensor weights = random_causal(random, n);
      trace.maps.push_back(
          AttentionMap::dense({layer, head, head}, weights, causal_rule(), stats_of_weights(weights, nullptr)));
    }
  return trace;
}

/// Of all ways to part the nodes between source and sink, the least capacity across: what the largest flow is.
double least_cut(const std::vector<Tensor>& mixing, Index query, Index key) {
  const Index n = mixing[0].dim(0);
  const auto layers = static_cast<Index>(mixing.size()), nodes = (layers + 1) * n;
  const Index source = layers * n + query, sink = key;
  double least = 1e9;
  for (std::uint32_t side = 0; side < (1u << nodes); ++side) {
    const auto in = [&](Index node) { return (side >> node) & 1u; };
    if (!in(source) || in(sink)) continue;
    double cut = 0;
    for (Index l = 1; l <= layers; ++l)
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j)
          if (in(l * n + i) && !in((l - 1) * n + j))
            cut += static_cast<double>(mixing[static_cast<std::size_t>(l - 1)].at(i, j));
    least = std::min(least, cut);
  }
  return least;
}
}  // namespace

TEST_CASE("mixing matrices: half the mean of the heads, half the residual stream") {
  const Trace trace = trace_of(2, 3, 4, 5);
  const auto mixing = mixing_matrices(trace, 0.25);
  for (int layer = 0; layer < 2; ++layer)
    for (Index i = 0; i < 4; ++i) {
      double sum = 0;
      for (Index j = 0; j < 4; ++j) {
        const float mean = (trace.map({layer, 0}).weight(i, j) + trace.map({layer, 1}).weight(i, j) +
                            trace.map({layer, 2}).weight(i, j)) /
                           3;
        const float found = mixing[static_cast<std::size_t>(layer)].at(i, j);
        CHECK(found == doctest::Approx(0.75f * mean + (i == j ? 0.25f : 0.0f)));
        sum += static_cast<double>(found);
      }
      CHECK(sum == doctest::Approx(1));
    }
  const auto even = mixing_matrices(trace, 0.5, true);
  CHECK(even[1].at(3, 0) == doctest::Approx(0.125));
  CHECK(even[1].at(3, 3) == doctest::Approx(0.625));
  CHECK(even[0].at(0, 1) == 0);
}

TEST_CASE("what a learned sink took comes from no token: rows are divided by what is left") {
  Trace trace = trace_of(2, 1, 2, 1);
  trace.maps.clear();
  for (int layer = 0; layer < 2; ++layer) {
    const Tensor weights = testing::rows_of({{0.25f}, {0.125f, 0.125f}});
    trace.maps.push_back(
        AttentionMap::dense({layer, 0, 0}, weights, causal_rule(), stats_of_weights(weights, nullptr)));
  }
  // ½ and ½ · ¼; of row 1 ½ · ⅛ and ½ + ½ · ⅛, both ÷ ⅝.
  const auto mixing = mixing_matrices(trace);
  CHECK(mixing[0].at(0, 0) == doctest::Approx(1));
  CHECK(mixing[0].at(1, 0) == doctest::Approx(0.1));
  CHECK(mixing[0].at(1, 1) == doctest::Approx(0.9));
  const Tensor rollout = attention_rollout(mixing);
  CHECK(rollout.at(1, 0) == doctest::Approx(0.19));
  CHECK(rollout.at(1, 1) == doctest::Approx(0.81));
  CHECK(attention_flow(mixing, 0)[0] == doctest::Approx(1));
}

TEST_CASE("rollout is the sum over all paths") {
  const Trace trace = trace_of(3, 2, 4, 9);
  const auto mixing = mixing_matrices(trace);
  const Tensor rollout = attention_rollout(mixing);
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 4; ++j) {
      double paths = 0;
      for (Index a = 0; a < 4; ++a)
        for (Index b = 0; b < 4; ++b)
          paths += static_cast<double>(mixing[2].at(i, a)) * static_cast<double>(mixing[1].at(a, b)) *
                   static_cast<double>(mixing[0].at(b, j));
      CHECK(rollout.at(i, j) == doctest::Approx(paths));
    }
  const Tensor relative = relative_to(rollout, attention_rollout(mixing_matrices(trace, 0.5, true)));
  CHECK(relative.at(0, 0) == doctest::Approx(1));  // the first row has no choice
  CHECK(std::isnan(relative.at(1, 3)));
}

TEST_CASE("flow is the least cut") {
  for (const auto& [layers, n] : {std::pair<int, Index>{2, 4}, {3, 3}}) {
    const Trace trace = trace_of(layers, 2, n, 21);
    const auto mixing = mixing_matrices(trace);
    for (Index query = 0; query < n; ++query) {
      const auto flow = attention_flow(mixing, query);
      for (Index key = 0; key < n; ++key)
        CHECK(flow[static_cast<std::size_t>(key)] == doctest::Approx(least_cut(mixing, query, key)).epsilon(1e-6));
    }
  }
}

TEST_CASE("flow through a bottleneck, by hand") {
  // Row 2 of the upper layer looks at 0 and 1 by halves; below, both look at 0 alone. ρ = 0.
  Trace trace = trace_of(2, 1, 3, 1);
  const auto put = [&](std::size_t at, const Tensor& w) {
    trace.maps[at] = AttentionMap::dense(trace.maps[at].place(), w, causal_rule(), stats_of_weights(w, nullptr));
  };
  put(0, testing::rows_of({{1}, {1, 0}, {0, 0, 1}}));
  put(1, testing::rows_of({{1}, {0, 1}, {0.5f, 0.5f, 0}}));
  const auto flow = attention_flow(mixing_matrices(trace, 0), 2);
  CHECK(flow[0] == doctest::Approx(1.0));  // two ways of one half each
  CHECK(flow[1] == doctest::Approx(0));
  CHECK(flow[2] == doctest::Approx(0));
}

TEST_CASE("rollout needs every head") {
  Trace trace = trace_of(2, 2, 3, 1);
  trace.maps.pop_back();
  CHECK_THROWS_WITH_AS(mixing_matrices(trace), doctest::Contains("found 3 of 4"), Error);
}

TEST_CASE("of a state space the signed weights are mixed by their size") {
  Trace trace = trace_of(1, 2, 3, 5);
  trace.model.dims.d_inner = 8;
  const Tensor first = testing::rows_of({{-2}, {1, -3}, {4, -4, 0}}),
               second = testing::rows_of({{5}, {0, 7}, {0, 0, 0}});
  trace.maps.clear();
  int head = 0;
  for (const Tensor& weights : {first, second}) {
    AttentionMap::Place place{0, head, head};
    place.kind = MapKind::effective;
    ++head;
    trace.maps.push_back(AttentionMap::dense(place, weights, causal_rule(), stats_of_weights(weights, nullptr)));
  }
  // Shares 1; ¼ ¾; ½ ½ 0 and 1; 0 1; nothing. Half of the mean of both, half of the row itself.
  const Tensor mixed = mixing_matrices(trace, 0.5).front();
  const double expected[3][3] = {{1, 0, 0}, {0.0625, 0.5 + 0.4375, 0}, {0.125, 0.125, 0.5}};
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 3; ++j) CHECK(mixed.at(i, j) == doctest::Approx(expected[i][j]));
}

}  // namespace headscope::rollout_test
