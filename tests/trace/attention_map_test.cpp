#include "core/trace/attention_map.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "tests/support/largest_difference.h"

namespace headscope::attention_map_test {

using testing::largest_difference;

namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// Causal within a window, one key in the middle hidden, and a bias that grows with distance: a rule with every feature.
class OddRule final : public AttentionRule {
 public:
  KeyRange keys(Index query, Index n_key) const override {
    return {std::max<Index>(0, query - 40), std::min(query + 1, n_key)};
  }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const Index key = first_key + static_cast<Index>(i);
      scores[i] = key % 7 == 3 ? minus_infinity : scores[i] - 0.1f * static_cast<float>(query - key);
    }
  }
  std::string describe() const override { return "odd"; }
};

Tensor random_rows(Index rows, Index columns, float size, Random& random) {
  Tensor tensor = Tensor::uninitialized({rows, columns});
  for (float& value : tensor.mutable_values()) value = size * random.normal();
  return tensor;
}

struct Pair {
  AttentionMap dense, factored;
  double largest_terms = 0;  // of scale · Σ |q| |k| + |bias|: what a float sum rounds to
};

// The same map twice; the dense one straight from the definition in double.
Pair make_pair(const Tensor& q, const Tensor& k, float scale, std::shared_ptr<const AttentionRule> rule, Index offset) {
  const Index n_query = q.dim(0), n_key = k.dim(0);
  auto stats = std::make_shared<HeadStats>();
  Tensor weights = Tensor::zeros({n_query, n_key});
  double largest_terms = 0;
  for (Index i = 0; i < n_query; ++i) {
    std::vector<double> scores;
    double sum = 0;
    for (Index j = 0; j < n_key; ++j) {
      double dot = 0, terms = 0;
      for (Index c = 0; c < q.dim(1); ++c) {
        const double term = static_cast<double>(q.at(i, c)) * static_cast<double>(k.at(j, c));
        dot += term;
        terms += std::abs(term);
      }
      float bias = 0;
      if (masked(*rule, offset + i, j, n_key)) {
        bias = minus_infinity;
      } else {
        rule->apply(offset + i, j, {&bias, 1});
      }
      scores.push_back(static_cast<double>(scale) * dot + static_cast<double>(bias));
      sum += std::exp(scores.back());
      if (bias != minus_infinity)
        largest_terms =
            std::max(largest_terms, static_cast<double>(scale) * terms + std::abs(static_cast<double>(bias)));
    }
    stats->log_sum_exp.push_back(std::log(sum));
    for (Index j = 0; j < n_key && sum > 0; ++j)
      weights.ref(i, j) = static_cast<float>(std::exp(scores[static_cast<std::size_t>(j)]) / sum);
  }
  const AttentionMap::Place place{.offset = offset};
  return {AttentionMap::dense(place, weights, rule, std::make_shared<HeadStats>()),
          AttentionMap::factored(place, q, k, scale, rule, stats), largest_terms};
}

/// The definition: of the squares' weights the one farthest from 0, of equals the positive.
Tensor strongest_of_squares(const Tensor& weights, Index bin) {
  const Index rows = (weights.dim(0) + bin - 1) / bin, columns = (weights.dim(1) + bin - 1) / bin;
  Tensor most = Tensor::zeros({rows, columns}), least = Tensor::zeros({rows, columns});
  for (Index i = 0; i < weights.dim(0); ++i)
    for (Index j = 0; j < weights.dim(1); ++j) {
      float &high = most.ref(i / bin, j / bin), &low = least.ref(i / bin, j / bin);
      high = std::max(high, weights.at(i, j)), low = std::min(low, weights.at(i, j));
    }
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c)
      if (-least.at(r, c) > most.at(r, c)) most.ref(r, c) = least.at(r, c);
  return most;
}

std::shared_ptr<const HeadStats> stored_overview(const Tensor& weights, int bin) {
  auto stats = std::make_shared<HeadStats>();
  stats->overview = {bin, strongest_of_squares(weights, bin)};
  stats->log_sum_exp.assign(static_cast<std::size_t>(weights.dim(0)), 0);
  return stats;
}

// Every cell of the overview is the strongest of the square it stands for, so none is lost and none invented.
void check_overview(const Overview& overview, const Tensor& weights, Index max_cells) {
  const Index bin = overview.bin, rows = overview.values.dim(0), columns = overview.values.dim(1);
  REQUIRE(rows <= max_cells);
  REQUIRE(columns <= max_cells);
  REQUIRE(rows == (weights.dim(0) + bin - 1) / bin);
  REQUIRE(columns == (weights.dim(1) + bin - 1) / bin);
  REQUIRE(largest_difference(overview.values, strongest_of_squares(weights, bin)) == 0);
}

}  // namespace

TEST_CASE("two tokens by hand: a factored causal map") {
  // q·k of row 1 with keys 0 and 1 is 0 and 2; scale ½ gives scores 0 and 1: weights 1/(1+e) and e/(1+e).
  const Tensor q = Tensor::from({2, 1}, std::vector<float>{5, 1}), k = Tensor::from({2, 1}, std::vector<float>{0, 2});
  const Pair pair = make_pair(q, k, 0.5f, causal_rule(), 0);
  const double e = std::exp(1.0);
  CHECK(pair.factored.weight(0, 0) == doctest::Approx(1.0));
  CHECK(pair.factored.weight(0, 1) == 0.0f);
  CHECK(pair.factored.weight(1, 0) == doctest::Approx(1 / (1 + e)).epsilon(1e-6));
  CHECK(pair.factored.weight(1, 1) == doctest::Approx(e / (1 + e)).epsilon(1e-6));
  CHECK(pair.factored.masked(0, 1));
  CHECK(!pair.factored.masked(1, 1));
  CHECK(pair.factored.is_factored());
  CHECK(!pair.dense.is_factored());
}

TEST_CASE("factored and dense maps agree to 1e-6, whatever the rule and the offset") {
  Random random(11);
  const std::shared_ptr<const AttentionRule> rules[] = {causal_rule(), full_rule(), std::make_shared<OddRule>()};
  for (const auto& rule : rules)
    for (const Index n : {1, 2, 7, 65, 300})
      for (const float size : {0.3f, 2.0f, 5.0f}) {
        const Index offset = rule == rules[1] ? 0 : n / 3;
        const Tensor q = random_rows(n, 16, size, random), k = random_rows(n + offset, 16, size, random);
        const Pair pair = make_pair(q, k, 0.25f, rule, offset);
        // The truth here has scores in double; the pass and the factored map have floats, whose step grows with the
        // score.
        const double tolerance = 1e-6 * std::max(1.0, pair.largest_terms / 4);
        REQUIRE(largest_difference(pair.factored.to_dense(), pair.dense.to_dense()) < tolerance);
        std::vector<float> row(static_cast<std::size_t>(n + offset));
        for (int sample = 0; sample < 20; ++sample) {
          const auto i = static_cast<Index>(random.below(static_cast<std::uint64_t>(n)));
          const auto j = static_cast<Index>(random.below(static_cast<std::uint64_t>(n + offset)));
          const double expected = static_cast<double>(pair.dense.weight(i, j));
          REQUIRE(std::abs(static_cast<double>(pair.factored.weight(i, j)) - expected) < tolerance);
          pair.factored.row(i, row);
          REQUIRE(std::abs(static_cast<double>(row[static_cast<std::size_t>(j)]) - expected) < tolerance);
          REQUIRE(pair.factored.masked(i, j) == (rule != rules[1] && pair.dense.masked(i, j)));
        }
      }
}

TEST_CASE("a tile is the same cells as the whole map, wherever it lies") {
  Random random(12);
  const Tensor q = random_rows(290, 8, 1, random), k = random_rows(290, 8, 1, random);
  const Pair pair = make_pair(q, k, 0.35f, std::make_shared<OddRule>(), 0);
  for (const AttentionMap* map : {&pair.dense, &pair.factored}) {
    const Tensor whole = map->to_dense();
    for (int sample = 0; sample < 40; ++sample) {
      KeyRange ranges[2];
      for (KeyRange& range : ranges) {
        range.begin = static_cast<Index>(random.below(290));
        range.end = range.begin + 1 + static_cast<Index>(random.below(static_cast<std::uint64_t>(290 - range.begin)));
      }
      const Tensor part = whole.slice(0, ranges[0].begin, ranges[0].end).slice(1, ranges[1].begin, ranges[1].end);
      REQUIRE(largest_difference(map->tile(ranges[0], ranges[1]), part) < 1e-7);
    }
  }
}

TEST_CASE("strided queries and keys, as heads of one fused product, give the same weights as packed ones") {
  Random random(13);
  const Tensor fused = random_rows(20, 3 * 8, 1, random);
  const Tensor q = fused.slice(1, 8, 16), k = fused.slice(1, 16, 24);
  const Pair views = make_pair(q, k, 0.3f, causal_rule(), 0),
             copies = make_pair(q.copy(), k.copy(), 0.3f, causal_rule(), 0);
  CHECK(largest_difference(views.factored.to_dense(), copies.factored.to_dense()) == 0);
}

TEST_CASE("a row that may see nothing is all zeros") {
  // The odd rule hides key 3, and with a window of nothing else there is nothing: −∞ as log-sum-exp must not give NaN.
  class Nothing final : public AttentionRule {
   public:
    KeyRange keys(Index, Index n_key) const override { return {0, n_key}; }
    bool plain() const override { return false; }
    void apply(Index, Index, std::span<float> scores) const override {
      std::fill(scores.begin(), scores.end(), minus_infinity);
    }
    std::string describe() const override { return "nothing"; }
  };
  const Tensor one = Tensor::full({2, 2}, 1);
  auto stats = std::make_shared<HeadStats>();
  stats->log_sum_exp.assign(2, -std::numeric_limits<double>::infinity());
  const AttentionMap map = AttentionMap::factored({}, one, one, 1, std::make_shared<Nothing>(), stats);
  CHECK(largest_difference(map.to_dense(), Tensor::zeros({2, 2})) == 0);
  CHECK(map.masked(0, 0));
}

TEST_CASE("the overview of a dense map never loses a maximum, for every size up to 300") {
  Random random(14);
  for (Index n = 1; n <= 300; ++n) {
    const Index n_key = n % 3 == 0 ? n : 1 + static_cast<Index>(random.below(300));
    const Tensor weights = random_rows(n, n_key, 1, random);  // signed: a pool that starts at zero would be found out
    const Index longest = std::max(n, n_key);
    const int bin = static_cast<int>((longest + stored_overview_cells - 1) / stored_overview_cells);
    const AttentionMap with = AttentionMap::dense({}, weights, nullptr, stored_overview(weights, bin));
    const AttentionMap without = AttentionMap::dense({}, weights, nullptr, std::make_shared<HeadStats>());
    for (const Index max_cells : {Index{1}, Index{7}, Index{64}, Index{128}, Index{200}, Index{1000}}) {
      check_overview(with.overview(max_cells), weights, max_cells);
      check_overview(without.overview(max_cells), weights, max_cells);
    }
    CHECK(with.overview(300).bin == 1);
  }
}

TEST_CASE("the overview of a factored map never loses a maximum") {
  Random random(15);
  for (const Index n : {1, 5, 127, 128, 129, 200, 300}) {
    const Tensor q = random_rows(n, 8, 1, random), k = random_rows(n, 8, 1, random);
    const Pair pair = make_pair(q, k, 0.35f, causal_rule(), 0);
    const Tensor weights = pair.factored.to_dense();
    auto stats = std::make_shared<HeadStats>(pair.factored.stats());
    const AttentionMap without = AttentionMap::factored({}, q, k, 0.35f, causal_rule(), stats);
    auto complete = std::make_shared<HeadStats>(*stats);
    complete->overview = stored_overview(weights, static_cast<int>((n + 127) / 128))->overview;
    const AttentionMap with = AttentionMap::factored({}, q, k, 0.35f, causal_rule(), complete);
    for (const Index max_cells : {1, 3, 60, 128, 150, 400}) {
      check_overview(with.overview(max_cells), weights, max_cells);
      check_overview(without.overview(max_cells), weights, max_cells);
    }
    CHECK(with.overview(n).bin == 1);
  }
}

TEST_CASE("a factored map keeps only its statistics: memory grows with n, not with n squared") {
  Random random(16);
  const Tensor q = random_rows(300, 8, 1, random);
  const Pair pair = make_pair(q, q, 0.35f, causal_rule(), 0);
  CHECK(pair.factored.bytes() == 300 * sizeof(double));
  CHECK(pair.dense.bytes() == 300 * 300 * sizeof(float));
}

}  // namespace headscope::attention_map_test
