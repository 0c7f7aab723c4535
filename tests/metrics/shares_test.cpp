#include "core/metrics/shares.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/metrics/maps.h"

namespace headscope::shares_test {

using namespace testing;

TEST_CASE("shares of a row: sizes by their sum, whatever the signs; of nothing nothing") {
  std::vector<float> row{-1, 3, 0, -4};
  to_shares(row);
  CHECK(row == std::vector<float>{0.125f, 0.375f, 0, 0.5f});
  std::vector<float> small{0.25f, -0.25f};
  to_shares(small);
  CHECK(small == std::vector<float>{0.5f, 0.5f});
  std::vector<float> zeros(3, 0.0f);
  to_shares(zeros);
  CHECK(zeros == std::vector<float>(3, 0.0f));
}

TEST_CASE("a signed map as shares: every row by itself, no probability touched") {
  const Tensor weights = rows_of({{-2}, {1, -3}, {0, 0, 0}, {4, -4, 1, -7}});
  AttentionMap::Place place{1, 2, 2};
  place.kind = MapKind::effective;
  const AttentionMap map = AttentionMap::dense(place, weights, causal_rule(), stats_of_weights(weights, nullptr));
  const TextMarks text = TextMarks::of(std::vector<std::int32_t>{5, 6, 5, 6});
  const AttentionMap shares = as_shares(map, text.links);
  const std::vector<std::vector<float>> expected{
      {1, 0, 0, 0}, {0.25f, 0.75f, 0, 0}, {0, 0, 0, 0}, {0.25f, 0.25f, 0.0625f, 0.4375f}};
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 4; ++j)
      CHECK(shares.weight(i, j) == expected[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
  CHECK(map.weight(1, 1) == -3);  // what was given stays
  CHECK(shares.id() == map.id());
  CHECK(shares.place().kind == MapKind::probability);
  CHECK(shares.stats().duplicate[3] == 0.25f);  // token 6 stood at position 1
  place.kind = MapKind::probability;
  const Tensor sure = rows_of({{1}, {0.5f, 0.5f}, {0.25f, 0.25f, 0.25f}, {1}});
  const AttentionMap own = AttentionMap::dense(place, sure, causal_rule(), stats_of_weights(sure, nullptr));
  CHECK(as_shares(own, text.links).weight(2, 0) == 0.25f);
}

}  // namespace headscope::shares_test
