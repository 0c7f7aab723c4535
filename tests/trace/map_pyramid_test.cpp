#include "core/trace/map_pyramid.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/random.h"
#include "core/base/thread_pool.h"
#include "tests/support/random_tensor.h"

namespace headscope::map_pyramid_test {

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Causal within a window, every seventh key hidden: a rule with every feature.
class OddRule final : public AttentionRule {
 public:
  explicit OddRule(Index window) : window_(window) {}
  KeyRange keys(Index query, Index n_key) const override {
    return {std::clamp<Index>(query - window_, 0, n_key), std::clamp<Index>(query + 1, 0, n_key)};
  }
  bool plain() const override { return false; }
  void apply(Index, Index first_key, std::span<float> scores) const override {
    for (std::size_t i = 0; i < scores.size(); ++i)
      if ((first_key + static_cast<Index>(i)) % 7 == 3) scores[i] = -std::numeric_limits<float>::infinity();
  }
  std::string describe() const override { return "odd"; }

 private:
  Index window_;
};

AttentionMap factored(Index n_query, Index n_key, std::shared_ptr<const AttentionRule> rule, Index offset,
                      std::uint64_t seed) {
  const Tensor q = testing::random_tensor({n_query, 16}, seed), k = testing::random_tensor({n_key, 16}, seed + 1);
  auto stats = std::make_shared<HeadStats>();
  Random random(seed + 2);
  for (Index i = 0; i < n_query; ++i) stats->log_sum_exp.push_back(3 + static_cast<double>(random.normal()));
  return AttentionMap::factored({.offset = offset}, q, k, 0.25f, std::move(rule), stats);
}

AttentionMap dense(Tensor weights) {
  const auto stats = stats_of_weights(weights, nullptr);
  return AttentionMap::dense({}, std::move(weights), nullptr, stats);
}

/// The definition: the weight farthest from 0 of those that a cell stands for, of equals the positive, NaN where one
/// is.
float pooled_by_hand(const Tensor& weights, Index bin, Index row, Index column) {
  float most = 0, least = 0;
  for (Index q = row * bin; q < std::min((row + 1) * bin, weights.dim(0)); ++q)
    for (Index k = column * bin; k < std::min((column + 1) * bin, weights.dim(1)); ++k) {
      if (std::isnan(weights.at(q, k))) return nan;
      most = std::max(most, weights.at(q, k));
      least = std::min(least, weights.at(q, k));
    }
  return -least > most ? least : most;
}

bool same(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

MapPyramid::Window whole(const MapPyramid& pyramid, int level) {
  return {level, {0, pyramid.rows(level)}, {0, pyramid.columns(level)}};
}

const auto for_ever = [] { return true; };

/// How many cells of a level are not what the definition says.
Index wrong_cells(MapPyramid& pyramid, const Tensor& weights, int level) {
  REQUIRE(pyramid.refine(whole(pyramid, level), for_ever));
  const MapPyramid::Cells cells = pyramid.read(whole(pyramid, level));
  REQUIRE(cells.coarse.empty());
  const Index bin = MapPyramid::bin(level);
  REQUIRE(cells.values.dim(0) == (weights.dim(0) + bin - 1) / bin);
  REQUIRE(cells.values.dim(1) == (weights.dim(1) + bin - 1) / bin);
  Index wrong = 0;
  for (Index r = 0; r < cells.values.dim(0); ++r)
    for (Index c = 0; c < cells.values.dim(1); ++c)
      wrong += !same(cells.values.at(r, c), pooled_by_hand(weights, bin, r, c));
  return wrong;
}

}  // namespace

TEST_CASE("every cell of every level is the strongest weight that it stands for, bit by bit") {
  const std::shared_ptr<const AttentionRule> causal = causal_rule(), full = full_rule(),
                                             odd = std::make_shared<OddRule>(40), wide = std::make_shared<OddRule>(900);
  const AttentionMap maps[] = {factored(1, 1, causal, 0, 1),      factored(2, 300, full, 0, 2),
                               factored(300, 2, full, 0, 3),      factored(127, 127, causal, 0, 4),
                               factored(129, 129, odd, 0, 5),     factored(700, 700, causal, 0, 6),
                               factored(333, 1000, wide, 667, 7), factored(641, 257, full, 0, 8)};
  for (const AttentionMap& map : maps) {
    CAPTURE(map.n_query());
    CAPTURE(map.n_key());
    const Tensor weights = map.to_dense();
    MapPyramid of_factors(map), of_weights(dense(weights));
    for (int level = 0; level <= 7; ++level) {
      CAPTURE(level);
      CHECK(wrong_cells(of_factors, weights, level) == 0);
      CHECK(wrong_cells(of_weights, weights, level) == 0);
    }
  }
}

TEST_CASE("levels finer than the one that stays whole: tiles of a long map, where they are asked for") {
  // 9,000 tokens: levels 0 and 1 are made tile by tile, level 2 and above are kept.
  const Index n = 9000;
  const AttentionMap map = factored(n, n, causal_rule(), 0, 21);
  MapPyramid pyramid(map);
  for (const auto& [level, row, column] : {std::tuple<int, Index, Index>{0, 8800, 8700},
                                           {0, 100, 90},
                                           {0, 5000, 4990},
                                           {1, 4400, 300},
                                           {1, 4300, 4300},
                                           {2, 2000, 1990},
                                           {3, 1000, 1000}}) {
    CAPTURE(level);
    CAPTURE(row);
    const Index bin = MapPyramid::bin(level), rows = std::min<Index>(200, pyramid.rows(level) - row),
                columns = std::min<Index>(150, pyramid.columns(level) - column);
    const MapPyramid::Window window{level, {row, row + rows}, {column, column + columns}};
    REQUIRE(pyramid.refine(window, for_ever));
    const MapPyramid::Cells cells = pyramid.read(window);
    REQUIRE(cells.coarse.empty());
    const KeyRange queries{row * bin, std::min(n, (row + rows) * bin)},
        keys{column * bin, std::min(n, (column + columns) * bin)};
    const Tensor weights = map.tile(queries, keys);
    Index wrong = 0;
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < columns; ++c) wrong += cells.values.at(r, c) != pooled_by_hand(weights, bin, r, c);
    CHECK(wrong == 0);
  }
}

TEST_CASE("a single strong cell is seen at every level, and so is a NaN") {
  Tensor weights = Tensor::zeros({1500, 1100});
  weights.ref(777, 333) = 0.5f;
  weights.ref(1499, 1099) = nan;
  MapPyramid pyramid(dense(weights));
  for (int level = 0; level <= 7; ++level) {
    CAPTURE(level);
    REQUIRE(pyramid.refine(whole(pyramid, level), for_ever));
    const Tensor cells = pyramid.read(whole(pyramid, level)).values;
    Index strong = 0, missing = 0, others = 0;
    for (Index r = 0; r < cells.dim(0); ++r)
      for (Index c = 0; c < cells.dim(1); ++c) {
        const float value = cells.at(r, c);
        strong += value == 0.5f;
        missing += std::isnan(value);
        others += !std::isnan(value) && value != 0.5f && value != 0;
      }
    CHECK(strong == 1);
    CHECK(missing == 1);
    CHECK(others == 0);
    CHECK(cells.at(777 >> level, 333 >> level) == 0.5f);
    CHECK(std::isnan(cells.at(1499 >> level, 1099 >> level)));
  }
}

TEST_CASE("of weights with signs the strongest is seen at every level, whichever its sign; of equals the positive") {
  Tensor weights = testing::random_tensor({1500, 1100}, 51);  // N(0, 1)
  for (const auto& [query, key, weight] :
       {std::tuple<Index, Index, float>{777, 333, -30.0f}, {128, 5, 20.0f}, {129, 5, -20.0f}, {2, 9, -40.0f}})
    weights.ref(query, key) = weight;
  for (Index k = 0; k < 64; ++k)
    for (Index q = 1024; q < 1152; ++q) weights.ref(q, k) = k % 2 ? -0.5f : -1.0f;  // nothing above 0
  MapPyramid pyramid(dense(weights));
  for (int level = 0; level <= 7; ++level) {
    CAPTURE(level);
    CHECK(wrong_cells(pyramid, weights, level) == 0);
    const Tensor cells = pyramid.read(whole(pyramid, level)).values;
    CHECK(cells.at(777 >> level, 333 >> level) == -30.0f);
    CHECK(cells.at(128 >> level, 5 >> level) == 20.0f);
    CHECK(cells.at(2 >> level, 9 >> level) == -40.0f);
    if (level > 0 && level < 7) CHECK(cells.at(1024 >> level, 0) == -1.0f);
  }
  // What a run stores is pooled alike, down and across.
  const auto stats = stats_of_weights(weights, nullptr);
  const Overview& stored = stats->overview;
  CHECK(stored.bin == 12);
  Index wrong = 0;
  for (Index r = 0; r < stored.values.dim(0); ++r)
    for (Index c = 0; c < stored.values.dim(1); ++c)
      wrong += stored.values.at(r, c) != pooled_by_hand(weights, 12, r, c);
  CHECK(wrong == 0);
}

TEST_CASE("until a tile is there its cells show no less than they hold, and nothing is blank") {
  const Index n = 1200;
  const AttentionMap bare = factored(n, n, causal_rule(), 0, 31);
  const Tensor weights = bare.to_dense();
  auto stats = std::make_shared<HeadStats>(bare.stats());
  stats->overview = {10, pooled(weights, 10)};
  const AttentionMap map = AttentionMap::factored({}, bare.q(), bare.k(), bare.scale(), causal_rule(), stats);
  MapPyramid pyramid(map);
  const auto check = [&](int level, bool all_coarse) {
    const MapPyramid::Cells cells = pyramid.read(whole(pyramid, level));
    REQUIRE_FALSE(cells.coarse.empty());
    Index less = 0, more = 0, known = 0;
    for (Index r = 0; r < cells.values.dim(0); ++r)
      for (Index c = 0; c < cells.values.dim(1); ++c) {
        const float value = cells.values.at(r, c), truth = pooled_by_hand(weights, MapPyramid::bin(level), r, c);
        const bool coarse = cells.coarse[static_cast<std::size_t>(r * cells.values.dim(1) + c)] != 0;
        known += !coarse;
        less += value < truth;
        more += !coarse && value != truth;
      }
    CHECK(less == 0);
    CHECK(more == 0);
    CHECK((known == 0) == all_coarse);
  };
  for (const int level : {0, 2, 5, 7}) check(level, true);
  // Three tiles, the ones nearest to the middle of the window.
  int asked = 0;
  CHECK_FALSE(pyramid.refine(whole(pyramid, 0), [&] { return ++asked <= 3; }));
  CHECK(asked == 4);
  for (const int level : {0, 2, 5, 7}) check(level, false);
  const MapPyramid::Cells middle = pyramid.read({0, {560, 640}, {560, 640}});
  CHECK(middle.coarse.empty());
  CHECK(pyramid.bytes() > 0);
}

TEST_CASE("a cell whose tile is not there shows what the finest level above it knows, to the bit") {
  // 9,000 keys: bins of 4 stay whole, and bins of 2 and of 1 are tiles that come and go.
  const AttentionMap map = factored(5, 9000, full_rule(), 0, 21);
  const Tensor weights = map.to_dense();
  MapPyramid pyramid(map);
  for (const int known : {2, 1}) {
    CAPTURE(known);
    REQUIRE(pyramid.refine(whole(pyramid, known), for_ever));
    const MapPyramid::Cells cells = pyramid.read(whole(pyramid, 0));
    REQUIRE(cells.coarse.size() == static_cast<std::size_t>(5 * 9000));
    Index wrong = 0;
    for (Index r = 0; r < 5; ++r)
      for (Index c = 0; c < 9000; ++c)
        wrong += !same(cells.values.at(r, c), pooled_by_hand(weights, MapPyramid::bin(known), r >> known, c >> known));
    CHECK(wrong == 0);
  }
}

TEST_CASE("what the mask hides costs neither time nor memory") {
  const Index n = 2048;
  const AttentionMap map = factored(n, n, causal_rule(), 0, 41);
  CHECK_FALSE(map.sees({0, 128}, {128, 256}));
  CHECK(map.sees({0, 129}, {128, 256}));
  MapPyramid pyramid(map);
  REQUIRE(pyramid.refine({0, {0, 1024}, {1024, 2048}}, for_ever));  // above the diagonal
  CHECK(pyramid.bytes() == 0);
  const MapPyramid::Cells cells = pyramid.read({0, {0, 1024}, {1024, 2048}});
  CHECK(cells.coarse.empty());
  CHECK(*std::ranges::max_element(cells.values.values()) == 0);
}

TEST_CASE("finer tiles are let go when others are looked at, and come again as they were") {
  const Index n = 16384;
  MapPyramid pyramid(factored(n, n, full_rule(), 0, 51));
  const MapPyramid::Window first{0, {5000, 5064}, {300, 364}};
  REQUIRE(pyramid.refine(first, for_ever));
  const Tensor before = pyramid.read(first).values;
  for (Index at = 0; at < 12; ++at) {
    const MapPyramid::Window other{0, {at * 1000, at * 1000 + 1000}, {6000, 8048}};
    REQUIRE(pyramid.refine(other, for_ever));
    CHECK(pyramid.read(other).coarse.empty());
    CHECK(pyramid.bytes() <= MapPyramid::fine_bytes);
  }
  CHECK_FALSE(pyramid.read(first).coarse.empty());
  REQUIRE(pyramid.refine(first, for_ever));
  const Tensor after = pyramid.read(first).values;
  for (Index r = 0; r < 64; ++r)
    for (Index c = 0; c < 64; ++c) REQUIRE(after.at(r, c) == before.at(r, c));
}

TEST_CASE("several threads make the same tiles as one, and two askers wait for one another") {
  const AttentionMap map = factored(900, 900, std::make_shared<OddRule>(500), 0, 61);
  MapPyramid alone(map), together(map);
  ThreadPool pool(3);
  REQUIRE(alone.refine(whole(alone, 0), for_ever));
  {
    std::jthread other([&] { together.refine(whole(together, 3), for_ever); });
    REQUIRE(together.refine(whole(together, 0), for_ever, &pool));
  }
  for (const int level : {0, 3, 7}) {
    const Tensor a = alone.read(whole(alone, level)).values, b = together.read(whole(together, level)).values;
    for (Index r = 0; r < a.dim(0); ++r)
      for (Index c = 0; c < a.dim(1); ++c) REQUIRE(a.at(r, c) == b.at(r, c));
  }
}

TEST_CASE("the level for a room: the finest that fits, a power of two") {
  MapPyramid pyramid(factored(1000, 1000, causal_rule(), 0, 71));
  CHECK(pyramid.level_for(500, 500) == 0);
  CHECK(pyramid.level_for(501, 500) == 1);
  CHECK(pyramid.level_for(1000, 500) == 1);
  CHECK(pyramid.level_for(1000, 499) == 2);
  CHECK(pyramid.level_for(1000, 1) == 7);  // as far as levels go
  CHECK(MapPyramid::bin_for(32768, 600) == 64);
  CHECK(MapPyramid::bin_for(1, 600) == 1);
}

}  // namespace headscope::map_pyramid_test
