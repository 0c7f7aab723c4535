#include "core/trace/strong_cells.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stop_token>
#include <vector>

#include "core/base/error.h"
#include "core/trace/row_stats.h"
#include "tests/support/random_tensor.h"

namespace headscope::strong_cells_test {

namespace {

AttentionMap dense(Tensor weights) {
  const auto stats = stats_of_weights(weights, nullptr);
  return AttentionMap::dense({}, std::move(weights), nullptr, stats);
}

/// A causal map with the statistics that a pass leaves.
AttentionMap causal(Index n) {
  const Tensor q = testing::random_tensor({n, 8}, 5), k = testing::random_tensor({n, 8}, 6);
  HeadStatsBuilder builder(n, n, 0, nullptr, true);
  for (int t = 0; t < builder.tiles(); ++t) {
    HeadStatsBuilder::Tile tile(builder, t);
    const Index first = t * builder.tile_rows();
    for (Index i = first; i < std::min(first + builder.tile_rows(), n); ++i) {
      std::vector<float> scores(static_cast<std::size_t>(i + 1), 0.0f);
      for (Index j = 0; j <= i; ++j)
        for (Index c = 0; c < 8; ++c) scores[static_cast<std::size_t>(j)] += q.at(i, c) * k.at(j, c);
      tile.softmax(i, {0, i + 1}, scores);
    }
  }
  return AttentionMap::factored({}, q, k, 1, causal_rule(), builder.finish());
}

/// All cells that are not 0, by the definition of the order.
std::vector<AttentionMap::Cell> sorted(const AttentionMap& map, std::optional<Index> row) {
  std::vector<AttentionMap::Cell> all;
  const Tensor weights = map.to_dense();
  for (Index q = row.value_or(0); q < (row ? *row + 1 : map.n_query()); ++q)
    for (Index k = 0; k < map.n_key(); ++k)
      if (!std::isnan(weights.at(q, k)) && weights.at(q, k) != 0) all.push_back({q, k, weights.at(q, k)});
  std::ranges::stable_sort(all, [](const AttentionMap::Cell& a, const AttentionMap::Cell& b) {
    return std::abs(a.weight) > std::abs(b.weight);
  });
  return all;
}

void check_order(const AttentionMap& map, std::optional<Index> row = std::nullopt) {
  const std::vector<AttentionMap::Cell> all = sorted(map, row);
  StrongCells strong(map, row);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto cell = strong.at(static_cast<Index>(i));
    REQUIRE(cell);
    REQUIRE(cell->query == all[i].query);
    REQUIRE(cell->key == all[i].key);
    REQUIRE(cell->weight == all[i].weight);
  }
  CHECK_FALSE(strong.at(static_cast<Index>(all.size())));
  CHECK(strong.at(0)->key == all[0].key);  // back again
}

}  // namespace

TEST_CASE("five cells by hand: by size, whichever sign; equal ones in reading order; zeros and NaN are none") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const AttentionMap map = dense(Tensor::from({2, 4}, std::vector<float>{0.2f, -0.7f, 0, 0.2f, nan, 0.2f, 0.5f, 0}));
  StrongCells strong(map);
  const std::vector<std::pair<Index, Index>> wanted{{0, 1}, {1, 2}, {0, 0}, {0, 3}, {1, 1}};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto cell = strong.at(static_cast<Index>(i));
    REQUIRE(cell);
    CHECK(std::pair(cell->query, cell->key) == wanted[i]);
  }
  CHECK(strong.at(0)->weight == -0.7f);
  CHECK_FALSE(strong.at(5));
  StrongCells of_row(map, 1);
  CHECK(of_row.at(0)->key == 2);
  CHECK(of_row.at(1)->key == 1);
  CHECK_FALSE(of_row.at(2));
}

TEST_CASE("all cells of a map, and of each of its rows, in the order of a sort") {
  for (const Index n : {1, 2, 40, 90}) {
    CAPTURE(n);
    const AttentionMap map = causal(n);
    check_order(map);
    check_order(map, n - 1);
    check_order(map, n / 2);
    check_order(dense(map.to_dense()));
  }
  Tensor ties = Tensor::zeros({60, 50});  // seven different values, again and again
  for (Index i = 0; i < ties.size(); ++i) ties.mutable_data()[i] = 0.125f * static_cast<float>(i * 37 % 8);
  check_order(dense(ties));
}

TEST_CASE("a search that is stopped can be taken up") {
  StrongCells strong(dense(testing::random_tensor({50, 50}, 9)));
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(strong.at(3, stop.get_token()), Cancelled);
  CHECK(strong.at(3));
}

}  // namespace headscope::strong_cells_test
