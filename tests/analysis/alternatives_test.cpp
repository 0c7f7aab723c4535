#include "core/analysis/alternatives.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/analysis/whatif.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "core/edits/weight_edit.h"
#include "tests/analysis/subjects.h"

namespace headscope::alternatives_test {

using testing::ReadSubject;

namespace {
/// A trace of one head whose last row and values are given.
Trace one_row(const std::vector<float>& weights, const Tensor& values) {
  const auto n = static_cast<Index>(weights.size());
  Trace trace;
  trace.model.dims = {.layers = 1,
                      .heads = 1,
                      .kv_heads = 1,
                      .d_head = static_cast<int>(values.dim(1)),
                      .d_model = 4,
                      .d_mlp = 0,
                      .vocab = 9};
  trace.tokens.resize(weights.size());
  Tensor map = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i) map.ref(i, 0) = 1;
  for (Index j = 0; j < n; ++j) map.ref(n - 1, j) = weights[static_cast<std::size_t>(j)];
  trace.maps.push_back(AttentionMap::dense({0, 0, 0}, map, causal_rule(), stats_of_weights(map, nullptr)));
  trace.sites[{SiteKind::v, 0}] = values.reshape({n, 1, values.dim(1)});
  return trace;
}

/// The least weight of key `key` over all corners of {α ≥ 0, Σ α = 1, Σ α v = z}: d + 1 keys at a time (d = 2 here).
double least_by_corners(const std::vector<double>& weights, const Tensor& values, std::size_t key) {
  const std::size_t n = weights.size();
  double z[2] = {0, 0};
  for (std::size_t j = 0; j < n; ++j)
    for (int d = 0; d < 2; ++d) z[d] += weights[j] * static_cast<double>(values.at(static_cast<Index>(j), d));
  const auto v = [&](std::size_t j, int d) { return static_cast<double>(values.at(static_cast<Index>(j), d)); };
  double least = weights[key];
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = a + 1; b < n; ++b)
      for (std::size_t c = b + 1; c < n; ++c) {
        // Cramer's rule: [1 1 1; va vb vc] x = [1; z].
        const auto det = [](double p[3][3]) {
          return p[0][0] * (p[1][1] * p[2][2] - p[1][2] * p[2][1]) - p[0][1] * (p[1][0] * p[2][2] - p[1][2] * p[2][0]) +
                 p[0][2] * (p[1][0] * p[2][1] - p[1][1] * p[2][0]);
        };
        const std::size_t keys[3] = {a, b, c};
        double x[3], whole[3][3] = {{1, 1, 1}, {v(a, 0), v(b, 0), v(c, 0)}, {v(a, 1), v(b, 1), v(c, 1)}};
        const double d = det(whole);
        if (std::abs(d) < 1e-9) continue;
        for (int i = 0; i < 3; ++i) {
          double one[3][3];
          std::copy(&whole[0][0], &whole[0][0] + 9, &one[0][0]);
          one[0][i] = 1, one[1][i] = z[0], one[2][i] = z[1];
          x[i] = det(one) / d;
        }
        if (std::min({x[0], x[1], x[2]}) < -1e-9) continue;
        double own = 0;
        for (int i = 0; i < 3; ++i)
          if (keys[i] == key) own = x[i];
        least = std::min(least, own);
      }
  return least;
}
}  // namespace

TEST_CASE("three keys on a line: the middle one gives its weight to both ends") {
  const Trace trace = one_row({0.2f, 0.6f, 0.2f}, Tensor::from({3, 1}, std::vector<float>{0, 1, 2}));
  const Alternatives found = find_alternatives(trace, {0, 0}, 2);
  CHECK(found.key == 1);
  CHECK(found.free == 1);
  const auto end = found.at(1), half = found.at(0.5);
  CHECK(end[0] == doctest::Approx(0.5));
  CHECK(end[1] == doctest::Approx(0));
  CHECK(end[2] == doctest::Approx(0.5));
  CHECK(half[1] == doctest::Approx(0.3));
  const RowDifference difference = row_difference(found.values, found.weights, end);
  CHECK(difference.variation == doctest::Approx(0.6));
  CHECK(difference.output == doctest::Approx(0));
  // ½ KL(p ‖ m) + ½ KL(q ‖ m), m = [0.35, 0.3, 0.35]
  const double expected = 0.5 * (0.4 * std::log(0.2 / 0.35) + 0.6 * std::log(2.0)) + 0.5 * std::log(0.5 / 0.35);
  CHECK(difference.divergence == doctest::Approx(expected));
}

TEST_CASE("beside a learned sink a row keeps its sum, and the sink its share") {
  const Trace trace = one_row({0.1f, 0.3f, 0.1f}, Tensor::from({3, 1}, std::vector<float>{0, 1, 2}));
  const Alternatives found = find_alternatives(trace, {0, 0}, 2);
  const auto end = found.at(1);
  CHECK(found.weights[1] == doctest::Approx(0.3));
  CHECK(end[0] == doctest::Approx(0.25));
  CHECK(end[1] == doctest::Approx(0));
  CHECK(end[2] == doctest::Approx(0.25));
  CHECK(row_difference(found.values, found.weights, end).variation == doctest::Approx(0.3));
  const auto moved = naive_shift(found.weights, 1, 0.15);
  CHECK(moved[0] == doctest::Approx(0.175));
  CHECK(moved[1] == doctest::Approx(0.15));
  // In a model: the same row changes nothing.
  ReadSubject s("families/gpt_oss", {3, 17, 8, 21});
  const Alternatives own = find_alternatives(*s.trace, {1, 1}, 3);
  CHECK(std::accumulate(own.weights.begin(), own.weights.end(), 0.0) < 0.99);
  CHECK(replace_row(s.loaded, s.request, s.ctx(), *s.trace, {1, 1}, 3, own.weights).kl < 1e-9);
}

TEST_CASE("the path ends at the linear program's optimum, and every point of it gives the same output") {
  Random random(3);
  for (int round = 0; round < 150; ++round) {
    const std::size_t n = 4 + static_cast<std::size_t>(round) % 9;
    Tensor values = Tensor::zeros({static_cast<Index>(n), 2});
    std::vector<float> weights;
    float sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      for (Index d = 0; d < 2; ++d) values.ref(static_cast<Index>(j), d) = random.normal();
      weights.push_back(static_cast<float>(random.uniform()));
      sum += weights.back();
    }
    for (float& w : weights) w /= sum;
    const Alternatives found = find_alternatives(one_row(weights, values), {0, 0}, -1);
    CAPTURE(round);
    CHECK(found.free == static_cast<Index>(n) - 3);
    for (const double share : {0.0, 0.3, 0.7, 1.0}) {
      const auto at = found.at(share);
      double total = 0;
      for (const double w : at) {
        CHECK(w >= 0);
        total += w;
      }
      CHECK(total == doctest::Approx(1));
      CHECK(row_difference(found.values, found.weights, at).output < 1e-6);
    }
    CHECK(found.at(1)[static_cast<std::size_t>(found.key)] ==
          doctest::Approx(least_by_corners(found.weights, values, static_cast<std::size_t>(found.key)))
              .epsilon(1e-5)
              .scale(0.01));
  }
}

TEST_CASE("values that pin the row leave no other weights; a tolerance finds nearly equal ones") {
  const Tensor values = Tensor::from({3, 2}, std::vector<float>{0, 0, 1, 0, 0, 0.01f});
  const Trace trace = one_row({0.3f, 0.3f, 0.4f}, values);
  const Alternatives pinned = find_alternatives(trace, {0, 0}, 2);
  CHECK(pinned.free == 0);
  CHECK(pinned.at(1) == pinned.weights);
  const Alternatives nearly = find_alternatives(trace, {0, 0}, 2, 2, 0.05);
  CHECK(nearly.free == 1);
  const RowDifference difference = row_difference(values, nearly.weights, nearly.at(1));
  CHECK(difference.variation > 0.3);
  CHECK(difference.output < 0.02);
  CHECK(difference.output > 0);
  CHECK_THROWS_AS(find_alternatives(trace, {0, 0}, 3), Error);
  CHECK_THROWS_AS(find_alternatives(trace, {0, 0}, 1, 2), Error);  // row 1 cannot see key 2
}

TEST_CASE("as much weight moved without looking at the values") {
  const std::vector<double> moved = naive_shift({0.5, 0.3, 0.2}, 0, 0.25);
  CHECK(moved[0] == doctest::Approx(0.25));
  CHECK(moved[1] == doctest::Approx(0.45));
  CHECK(moved[2] == doctest::Approx(0.3));
  CHECK(naive_shift({0.5, 0.5}, 0, 0.9)[0] == doctest::Approx(0));
  CHECK(naive_shift({1, 0}, 0, 0.5)[0] == 1);
}

TEST_CASE("a replaced row in the model: the same row changes nothing, another one what an edit of that weight does") {
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    ReadSubject s(folder, {5, 9, 5, 30, 9, 5, 17, 2, 11, 3, 8, 14, 20, 6});
    const Index row = 12;
    const Alternatives found = find_alternatives(*s.trace, {1, 2}, row);
    CHECK(found.free == 13 - 1 - s.dims().d_head);
    const RowReplaced same = replace_row(s.loaded, s.request, s.ctx(), *s.trace, {1, 2}, row, found.weights);
    CHECK(same.kl < 1e-9);
    const RowReplaced other = replace_row(s.loaded, s.request, s.ctx(), *s.trace, {1, 2}, row, found.at(1));
    const double moved = row_difference(found.values, found.weights, found.at(1)).variation;
    CHECK(moved > 0.002);
    CHECK(other.kl < 1e-8);
    // Against SetWeight, which moves the same weight without looking at the values.
    const auto naive = naive_shift(found.weights, found.key, moved);
    RunRequest edited = s.request;
    edited.edits = {
        {{1, 2, {}},
         SetWeight{static_cast<int>(row), static_cast<int>(found.key), naive[static_cast<std::size_t>(found.key)]}}};
    const auto expected = next_token_change(*s.trace, *run(s.loaded, edited, s.ctx()), 6, static_cast<int>(row));
    const RowReplaced shifted = replace_row(s.loaded, s.request, s.ctx(), *s.trace, {1, 2}, row, naive);
    CHECK(shifted.kl == doctest::Approx(expected.kl).epsilon(1e-3).scale(1e-7));
    CHECK(shifted.kl > 10 * other.kl);
  }
}

TEST_CASE("a row that sees one key has no other weights") {
  const Trace trace = one_row({0.2f, 0.6f, 0.2f}, Tensor::from({3, 1}, std::vector<float>{0, 1, 2}));
  const Alternatives found = find_alternatives(trace, {0, 0}, 0);
  CHECK(found.key == 0);
  CHECK(found.free == 0);
  CHECK(found.weights == std::vector<double>{1});
  CHECK(found.at(1) == std::vector<double>{1});
  CHECK(found.corners.size() == 1);
}

TEST_CASE("values that are all the same leave a row everything") {
  const Trace trace = one_row({0.2f, 0.6f, 0.2f}, Tensor::from({3, 1}, std::vector<float>{2, 2, 2}));
  const Alternatives found = find_alternatives(trace, {0, 0}, 2);
  CHECK(found.free == 2);
  CHECK(found.at(1)[1] == doctest::Approx(0));
}

}  // namespace headscope::alternatives_test
