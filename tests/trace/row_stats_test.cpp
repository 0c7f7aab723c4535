#include "core/trace/row_stats.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "core/trace/attention_map.h"
#include "core/trace/row_kernels.h"
#include "tests/support/worst.h"

namespace headscope::row_stats_test {

using testing::Worst;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Built {
  Tensor weights;
  std::shared_ptr<const HeadStats> stats;
};

/// Softmax of random causal scores through the builder, tiles in a scrambled order.
Built build(Index n, Index offset, double spread, const TokenLinks* links, std::uint64_t seed,
            Tensor* scores_out = nullptr) {
  Random random(seed);
  const Index n_key = n + offset;
  Tensor scores = Tensor::full({n, n_key}, -std::numeric_limits<float>::infinity());
  for (Index i = 0; i < n; ++i)
    for (Index k = 0; k <= offset + i; ++k) scores.ref(i, k) = static_cast<float>(spread) * random.normal();
  if (scores_out) *scores_out = scores.copy();
  HeadStatsBuilder builder(n, n_key, offset, links, true);
  for (int t = builder.tiles() - 1; t >= 0; --t) {
    HeadStatsBuilder::Tile tile(builder, t);
    for (Index i = t * builder.tile_rows(); i < std::min(n, (t + 1) * builder.tile_rows()); ++i) {
      const KeyRange keys{0, offset + i + 1};
      tile.softmax(i, keys, {&scores.ref(i, 0), static_cast<std::size_t>(keys.size())});
      for (Index k = keys.end; k < n_key; ++k) scores.ref(i, k) = 0;
    }
  }
  return {scores, builder.finish()};
}

}  // namespace

TEST_CASE("of the numbers of a bin the one farthest from 0 stays, of equals the positive, and NaN before all") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Random random(1);
  for (const Index n : {1, 2, 15, 16, 17, 64, 100, 257})
    for (const Index bin : {1, 2, 3, 4, 7, 16, 300}) {
      std::vector<float> row(static_cast<std::size_t>(n));
      for (float& each : row) each = static_cast<float>(random.below(7)) - 3;  // many of equal size
      if (n > 15) row[14] = nan;
      std::vector<float> found(static_cast<std::size_t>((n + bin - 1) / bin), -9);
      row_kernels::farthest(row.data(), n, bin, found.data());
      for (std::size_t c = 0; c < found.size(); ++c) {
        CAPTURE(n);
        CAPTURE(bin);
        CAPTURE(c);
        float expected = 0;
        for (Index k = static_cast<Index>(c) * bin; k < std::min(n, static_cast<Index>(c + 1) * bin); ++k)
          pool_weight(expected, row[static_cast<std::size_t>(k)]);
        if (std::isnan(expected))
          CHECK(std::isnan(found[c]));
        else
          CHECK(found[c] == expected);
      }
    }
}

TEST_CASE("softmax rows and their sums equal the definition in double") {
  for (const Index n : {1, 2, 15, 64, 65, 200, 300})
    for (const double spread : {0.1, 3.0, 40.0}) {
      CAPTURE(n);
      CAPTURE(spread);
      std::vector<std::int32_t> tokens;
      for (Index i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>(i % 7));
      const TokenLinks links = TokenLinks::of(tokens);
      Tensor scores;
      const Built b = build(n, 0, spread, &links, 11, &scores);
      const HeadStats& s = *b.stats;
      std::vector<double> column(static_cast<std::size_t>(n)), distance(static_cast<std::size_t>(2 * n - 1));
      Worst worst;
      const auto compare = [&](double got, double want) { worst.add(std::abs(got - want)); };
      for (Index i = 0; i < n; ++i) {
        const auto row = static_cast<std::size_t>(i);
        double z = 0, top = -infinity, z_rest = 0;
        for (Index k = 0; k <= i; ++k) z += std::exp(static_cast<double>(scores.at(i, k)));
        for (Index k = 1; k <= i; ++k) z_rest += std::exp(static_cast<double>(scores.at(i, k)));
        double entropy = 0, entropy_rest = 0, duplicate = 0, induction = 0;
        Index top_key = -1;
        for (Index k = 0; k <= i; ++k) {
          const double e = std::exp(static_cast<double>(scores.at(i, k))), p = e / z;
          compare(b.weights.at(i, k), p);
          if (p > 0) entropy -= p * std::log(p);
          if (k > 0 && e > 0) entropy_rest -= e / z_rest * std::log(e / z_rest);
          if (p > top) {
            top = p;
            top_key = k;
          }
          column[static_cast<std::size_t>(k)] += p;
          distance[static_cast<std::size_t>(i - k + n - 1)] += p;
          if (k < i && tokens[static_cast<std::size_t>(k)] == tokens[row]) duplicate += p;
          if (k > 0 && tokens[static_cast<std::size_t>(k - 1)] == tokens[row]) induction += p;
        }
        compare(s.log_sum_exp[row], std::log(z));
        compare(s.entropy[row], entropy);
        if (i > 0 && z_rest / z > 1e-20) compare(s.entropy_without_first[row], entropy_rest);
        compare(s.max_weight[row], top);
        CHECK(s.max_key[row] == top_key);
        compare(s.first[row], std::exp(static_cast<double>(scores.at(i, 0))) / z);
        compare(s.duplicate[row], duplicate);
        compare(s.induction[row], induction);
      }
      for (std::size_t k = 0; k < column.size(); ++k) compare(s.column_mass[k], column[k]);
      for (std::size_t d = 0; d < distance.size(); ++d) compare(s.distance_mass[d], distance[d]);
      CHECK(worst.value() < 5e-6 * std::max(1.0, spread));
      CHECK(std::isnan(s.entropy_without_first[0]));
    }
}

TEST_CASE("sums taken inside the softmax agree with sums taken from the weights") {
  for (const Index offset : {0, 3, 40}) {
    const Built b = build(150, offset, 2.0, nullptr, 5);
    const auto from_weights = stats_of_weights(b.weights, nullptr, offset);
    CHECK(from_weights->log_sum_exp.empty());
    CHECK(from_weights->duplicate.empty());
    Worst worst;
    for (std::size_t i = 0; i < 150; ++i) {
      worst.add(std::abs(static_cast<double>(b.stats->entropy[i]) - from_weights->entropy[i]));
      if (offset > 0 || i > 0)
        worst.add(
            std::abs(static_cast<double>(b.stats->entropy_without_first[i]) - from_weights->entropy_without_first[i]));
      CHECK(b.stats->max_weight[i] == from_weights->max_weight[i]);
      CHECK(b.stats->max_key[i] == from_weights->max_key[i]);
    }
    CHECK(worst.value() < 3e-6);
    CHECK(b.stats->column_mass == from_weights->column_mass);
    CHECK(b.stats->distance_mass == from_weights->distance_mass);
    const Tensor left = b.stats->overview.values, right = from_weights->overview.values;
    REQUIRE(left.shape() == right.shape());
    CHECK(std::ranges::equal(left.values(), right.values()));
  }
}

TEST_CASE("distance 0 is the diagonal of the text, also when the queries continue a cached one") {
  Tensor weights = Tensor::zeros({2, 5});  // queries at positions 3 and 4
  weights.ref(0, 3) = 1;                   // itself
  weights.ref(1, 0) = 1;                   // four back
  const auto s = stats_of_weights(weights, nullptr, 3);
  const auto entry = [&](Index distance) { return s->distance_mass[static_cast<std::size_t>(distance + 5 - 1 - 3)]; };
  CHECK(entry(0) == 1);
  CHECK(entry(4) == 1);
  CHECK(entry(1) == 0);
}

TEST_CASE("a row whose every key is masked becomes zero and counts for nothing") {
  HeadStatsBuilder builder(1, 3, 0, nullptr, true);
  std::vector<float> row(3, -std::numeric_limits<float>::infinity());
  {
    HeadStatsBuilder::Tile tile(builder, 0);
    tile.softmax(0, {0, 3}, row);
  }
  const auto s = builder.finish();
  CHECK(row == std::vector<float>(3, 0.0f));
  CHECK(s->max_key[0] == -1);
  CHECK(s->entropy[0] == 0);
  CHECK(s->column_mass[1] == 0);
}

TEST_CASE("scores of ±10000 neither overflow nor lose the largest") {
  std::vector<float> row{-10000, 10000, 9999, -std::numeric_limits<float>::infinity()};
  softmax_row(row);
  CHECK(row[0] == 0);
  CHECK(row[1] == doctest::Approx(1 / (1 + std::exp(-1.0))).epsilon(1e-6));
  CHECK(row[2] == doctest::Approx(1 / (1 + std::exp(1.0))).epsilon(1e-6));
  CHECK(row[3] == 0);
}

}  // namespace headscope::row_stats_test
