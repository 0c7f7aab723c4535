// Two texts of three and four tokens, every sum by hand.

#include "core/metrics/trace_difference.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/metrics/maps.h"

namespace headscope::trace_difference_test {

using testing::rows_of;

namespace {

AttentionMap map_of_rows(const Tensor& weights, int layer = 0, int head = 0) {
  return AttentionMap::dense({.layer = layer, .head = head}, weights, causal_rule(),
                             stats_of_weights(weights, nullptr));
}

Trace text_of(std::initializer_list<const char*> words) {
  Trace trace;
  for (const char* word : words) trace.tokens.push_back({0, word, word});
  return trace;
}

double kl(double p, double q) {
  return p > 0 ? p * std::log(p / q) : 0;
}

}  // namespace

TEST_CASE("tokens are paired by what they stand for") {
  const Trace a = text_of({"the", "cat", "sat"}), b = text_of({"the", "big", "cat", "sat"});
  CHECK(align_traces(a, b) == std::vector<int>{0, 2, 3});
  CHECK(align_traces(b, a) == std::vector<int>{0, -1, 1, 2});
}

TEST_CASE("distances between two heads, by hand") {
  const AttentionMap a = map_of_rows(rows_of({{1}, {0.5f, 0.5f}, {0.2f, 0.3f, 0.5f}}));
  SUBCASE("the same head") {
    const std::vector<int> same = {0, 1, 2};
    const HeadDifference d = head_difference(a, a, same);
    CHECK(d.rows == 3);
    CHECK(d.total_variation == 0);
    CHECK(d.jensen_shannon == 0);
  }
  SUBCASE("weights of any sign, as a state space has them: a distance, and no divergence") {
    const AttentionMap b = map_of_rows(rows_of({{-0.5f}, {0.25f, 0.5f}, {0.2f, -0.3f, 1.5f}}));
    const HeadDifference d = head_difference(a, b, std::vector<int>{0, 1, 2});
    CHECK(d.total_variation == doctest::Approx((1.5 + 0.25 + 1.6) / 2 / 3));
    CHECK(std::isnan(d.jensen_shannon));
  }
  SUBCASE("the same text, another head") {
    const AttentionMap b = map_of_rows(rows_of({{1}, {1, 0}, {0.2f, 0.1f, 0.7f}}));
    const std::vector<int> same = {0, 1, 2};
    const HeadDifference d = head_difference(a, b, same);
    // Rows: 0; ½ (0.5 + 0.5); ½ (0.2 + 0.2).
    CHECK(d.total_variation == doctest::Approx((0 + 0.5 + 0.2) / 3));
    const double second = (kl(0.5, 0.75) + kl(0.5, 0.25) + kl(1, 0.75)) / 2;
    const double third = (kl(0.3, 0.2) + kl(0.5, 0.6) + kl(0.1, 0.2) + kl(0.7, 0.6)) / 2;
    CHECK(d.jensen_shannon == doctest::Approx((second + third) / 3));
    const Tensor cells = aligned_difference(a, b, same);
    CHECK(cells.at(1, 0) == doctest::Approx(0.5));
    CHECK(cells.at(2, 1) == doctest::Approx(-0.2));
  }
  SUBCASE("a word more: its weight has no partner") {
    // a: 0 1 2; b: 0 x 1 2.
    const AttentionMap b = map_of_rows(rows_of({{1}, {0, 1}, {0.4f, 0.2f, 0.4f}, {0.2f, 0.4f, 0.1f, 0.3f}}));
    const std::vector<int> partner = {0, 2, 3};
    const HeadDifference d = head_difference(a, b, partner);
    // Row 1 against 2: |0.5−0.4| + |0.5−0.4| + 0.2, halved; row 2 against 3: 0 + |0.3−0.1| + |0.5−0.3| + 0.4, halved.
    CHECK(d.total_variation == doctest::Approx((0 + 0.2 + 0.4) / 3));
    const Tensor cells = aligned_difference(a, b, partner);
    CHECK(cells.at(1, 1) == doctest::Approx(-0.1));
    CHECK(cells.at(2, 1) == doctest::Approx(-0.2));
    // The other way round the extra query is left out, and its key is neutral.
    const std::vector<int> back = {0, -1, 1, 2};
    const HeadDifference reverse = head_difference(b, a, back);
    CHECK(reverse.rows == 3);
    CHECK(reverse.total_variation == doctest::Approx(d.total_variation));
    CHECK(reverse.jensen_shannon == doctest::Approx(d.jensen_shannon));
    const Tensor other = aligned_difference(b, a, back);
    CHECK(std::isnan(other.at(1, 0)));
    CHECK(std::isnan(other.at(2, 1)));
    CHECK(other.at(3, 2) == doctest::Approx(0.2));
  }
  SUBCASE("nothing corresponds") {
    const std::vector<int> none = {-1, -1, -1};
    const HeadDifference d = head_difference(a, a, none);
    CHECK(d.rows == 0);
    CHECK(std::isnan(d.total_variation));
  }
  SUBCASE("nothing in common") {
    const AttentionMap first = map_of_rows(rows_of({{1}, {1, 0}})), self = map_of_rows(rows_of({{1}, {0, 1}}));
    const std::vector<int> second_only = {-1, 1};
    // Key 0 has no partner: its weight is an outcome of one side alone.
    const HeadDifference d = head_difference(first, self, second_only);
    CHECK(d.total_variation == doctest::Approx(1));
    CHECK(d.jensen_shannon == doctest::Approx(std::log(2.0)));
  }
}

TEST_CASE("heads that only one trace holds are left out") {
  Trace a = text_of({"x", "y"}), b = a;
  const Tensor weights = rows_of({{1}, {0.5f, 0.5f}});
  a.maps = {map_of_rows(weights, 0, 0), map_of_rows(weights, 0, 1), map_of_rows(weights, 1, 0)};
  b.maps = {map_of_rows(weights, 0, 1), map_of_rows(rows_of({{1}, {1, 0}}), 1, 0)};
  const std::vector<int> same = {0, 1};
  const auto all = head_differences(a, b, same);
  REQUIRE(all.size() == 2);
  CHECK(all[0].id.head == 1);
  CHECK(all[0].total_variation == 0);
  CHECK(all[1].id.layer == 1);
  CHECK(all[1].total_variation == doctest::Approx(0.25));
}

TEST_CASE("predictions are compared at paired positions") {
  Trace a = text_of({"x", "y"}), b = text_of({"z", "x", "y"});
  const std::vector<float> half = {0, 0, std::log(3.0f), 0}, more = {9, 9, 0, 0, 0, std::log(3.0f)};
  a.logits = Tensor::from({2, 2}, half);  // ½ ½, ¾ ¼
  b.logits = Tensor::from({3, 2}, more);  // …, ½ ½, ¼ ¾
  const std::vector<int> partner = {1, 2};
  const auto distances = aligned_kl(a, b, partner);
  REQUIRE(distances.size() == 2);
  CHECK(distances[0] == doctest::Approx(0));
  CHECK(distances[1] == doctest::Approx(0.75 * std::log(3.0) - 0.25 * std::log(3.0)));
  b.logits = Tensor::zeros({3, 5});
  CHECK(aligned_kl(a, b, partner).empty());
}

}  // namespace headscope::trace_difference_test
