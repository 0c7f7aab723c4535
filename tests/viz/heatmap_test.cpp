#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/trace/map_pyramid.h"
#include "tests/viz/sample.h"
#include "tests/viz/scene_boxes.h"
#include "viz/scene/head_map.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/row_bars.h"

namespace headscope::heatmap_test {

using namespace testing;

TEST_CASE("masked and missing cells have colours of their own, never the colour of zero") {
  for (const Theme& theme : themes()) {
    CAPTURE(theme.id);
    const float values[] = {0, 1, std::nanf(""), 0.5f};
    MapCells cells{1, Tensor::from({2, 2}, values), {0, 1, 0, 0}, 2, 2};
    const Heatmap map = heatmap_of(cells, {0, 0, 10, 10}, ColorNorm{}, theme);
    CHECK(map.color(0, 0) == theme.sequential->table[0]);
    CHECK(map.color(0, 1) == theme.masked);
    CHECK(map.color(1, 0) == theme.missing);
    CHECK(map.color(1, 1) == theme.sequential->table[128]);
    CHECK(cells.any_masked());
    CHECK(cells.any_missing());
    CHECK(cells.highest() == 0.5f);  // the masked 1 does not count
    for (const Colormap* colors : {theme.sequential, theme.diverging})
      for (const Color own : {theme.masked, theme.missing})
        for (const double t : {0.0, 0.5}) {  // where zero lies
          const Oklab a = to_oklab(own), b = to_oklab(colors->at(colors->diverging ? 0.5 : t * 0.02));
          CHECK(std::hypot(a.L - b.L, a.a - b.a, a.b - b.b) > 0.025);  // just noticeable is about 0.02
        }
  }
}

TEST_CASE("per-row scaling divides by the largest visible weight of the row") {
  const float values[] = {0.2f, 0.1f, 9, 0.5f};
  const MapCells cells{1, Tensor::from({2, 2}, values), {0, 0, 1, 0}, 2, 2};
  const Heatmap map = heatmap_of(cells, {0, 0, 10, 10}, ColorNorm{Scale::per_row, 0, 1}, theme("dark"));
  CHECK(map.unit(0, 0) == doctest::Approx(1));
  CHECK(map.unit(0, 1) == doctest::Approx(0.5));
  CHECK(map.unit(1, 1) == doctest::Approx(1));
  CHECK(std::isnan(map.unit(1, 0)));
}

TEST_CASE("a point finds its cell, and points outside find none") {
  Heatmap map;
  map.rect = {10, 20, 30, 60};
  map.values = Tensor::zeros({3, 2});
  CHECK(cell_at(map, {10, 20}) == Cell{0, 0});
  CHECK(cell_at(map, {24.9, 39.9}) == Cell{0, 0});
  CHECK(cell_at(map, {25, 40}) == Cell{1, 1});
  CHECK(cell_at(map, {39.99, 79.99}) == Cell{2, 1});
  CHECK_FALSE(cell_at(map, {40, 50}));
  CHECK_FALSE(cell_at(map, {9.9, 50}));
}

TEST_CASE("pooling keeps every maximum, masks only what is all masked, and shows a NaN") {
  Tensor weights = sample_weights(101, 101, 0, true, 3);
  weights.ref(100, 50) = 0.999f;
  weights.ref(80, 3) = std::nanf("");
  const AttentionMap map = dense_map(0, 0, weights, causal_rule());
  const MapCells cells = map_cells(map, 20);
  CHECK(cells.bin == 6);
  CHECK(cells.rows() == 17);
  CHECK(cells.values.at(16, 8) == 0.999f);
  CHECK(std::isnan(cells.values.at(13, 0)));
  for (Index r = 0; r < 17; ++r)
    for (Index c = 0; c < 17; ++c) {
      CHECK((cells.masked[static_cast<std::size_t>(r * 17 + c)] != 0) == (c > r));
      float largest = 0;
      bool nan = false;
      for (Index q = r * 6; q < std::min<Index>(101, r * 6 + 6); ++q)
        for (Index k = c * 6; k < std::min<Index>(101, c * 6 + 6); ++k)
          nan |= std::isnan(weights.at(q, k)), largest = std::max(largest, weights.at(q, k));
      if (!nan) CHECK(cells.values.at(r, c) == largest);
    }
  CHECK(pooling_note(cells) == "max-pooled 101 × 101 → 17 × 17");
  CHECK(pooling_note(map_cells(map, 101)) == "");
}

TEST_CASE("the scale follows from the kind of weights, and impossible wishes are errors") {
  const float positive[] = {0.1f, 0.3f}, mixed[] = {-0.4f, 0.3f};
  const MapCells a{1, Tensor::from({1, 2}, positive), {}, 1, 2}, b{1, Tensor::from({1, 2}, mixed), {}, 1, 2};
  const auto norm = [](const MapCells& cells, MapKind kind, const Scaling& s) {
    return norm_for(std::span(&cells, 1), kind, s);
  };
  CHECK(norm(a, MapKind::probability, {}).high == 1);
  CHECK(norm(a, MapKind::probability, {Scale::log, {}, {}}).low == doctest::Approx(1e-4));
  CHECK(norm(a, MapKind::probability, {Scale::linear, {}, 0.5}).high == 0.5);
  CHECK(norm(a, MapKind::effective, {}).high == doctest::Approx(0.3));
  const ColorNorm both = norm(b, MapKind::effective, {});
  CHECK(both.low == doctest::Approx(-0.4));
  CHECK(both.high == doctest::Approx(0.4));
  CHECK(is_signed(both));
  CHECK(heatmap_of(b, {0, 0, 1, 1}, both, theme("light")).colormap == &colormap("diverging-light"));
  CHECK_THROWS_WITH_AS(norm(b, MapKind::effective, {Scale::log, {}, {}}), doctest::Contains("-0.4"), Error);
  CHECK_THROWS_AS(norm(a, MapKind::probability, {Scale::linear, 2, 1}), Error);
  CHECK_THROWS_AS(norm(a, MapKind::probability, {Scale::log, 0, 1}), Error);
  CHECK_THROWS_AS(norm(a, MapKind::probability, {Scale::linear, {}, std::nan("")}), Error);
}

TEST_CASE("colours of a map with signs have two ends, however its cells are pooled and whichever part is shown") {
  Tensor weights = sample_weights(101, 101, 0, true, 3);
  weights.ref(100, 50) = -1e-4f;  // beside larger ones, so that no bin shows it
  AttentionMap::Place place;
  place.kind = MapKind::effective;
  const AttentionMap map = AttentionMap::dense(place, weights, causal_rule(), stats_of_weights(weights, nullptr));
  CHECK(map.stats().any_negative());
  CHECK(map.stats().min_weight[100] == -1e-4f);
  CHECK(map.stats().min_weight[99] == 0);
  MapPyramid pyramid(map);
  for (const MapCells& cells :
       {map_cells(map, 101), map_cells(map, 20), map_cells(map, {0, 30, 0, 30}, 30), overview_cells(map, 20),
        map_cells(pyramid, {0, 101, 0, 101}, 20, [] { return true; })}) {
    CHECK(is_signed(norm_for(std::span(&cells, 1), MapKind::effective, {})));
    CHECK_THROWS_WITH_AS(norm_for(std::span(&cells, 1), MapKind::effective, {Scale::log, {}, {}}),
                         doctest::Contains(cells.lowest() < 0 ? "-0.0001" : "some below 0"), Error);
  }
  CHECK(map_cells(map, 20).lowest() >= 0);
  CHECK(pooling_note(map_cells(map, 20)) == "pooled by largest |weight| 101 × 101 → 17 × 17");
  // Bars of a row without one below 0 stand on the bottom, in the map's colours.
  Trace trace = empty_trace(101);
  trace.maps = {map};
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const auto lowest_tick = [&](Index query) {
    RowBarsOptions options;
    options.query = query;
    return std::get<Text>(find(row_bars_scene(trace, options, style), "axis.tick.0")->shape).text;
  };
  CHECK(lowest_tick(99) == "0");
  CHECK(lowest_tick(100).starts_with("−"));
  RowBarsOptions options;
  options.query = 99;
  Index strongest = 0;
  for (Index k = 0; k < 101; ++k) strongest = weights.at(99, k) > weights.at(99, strongest) ? k : strongest;
  const Color bar =
      std::get<Box>(find(row_bars_scene(trace, options, style), "bar." + std::to_string(strongest))->shape).fill;
  bool of_diverging = false;
  for (int step = 256; step <= 512; ++step) of_diverging |= bar == style.theme.diverging->at(step / 512.0);
  CHECK(of_diverging);
  const AttentionMap attention = dense_map(0, 0, sample_weights(101, 101, 0, true, 3), causal_rule());
  CHECK_FALSE(attention.stats().any_negative());
}

TEST_CASE("cells are whole pixels, square, and large enough to be named while that is possible") {
  CHECK(cell_size(6, 6, 640).w == 44);
  CHECK(cell_size(14, 14, 640).w == 44);
  CHECK(cell_size(40, 40, 640).w == 16);
  CHECK(cell_size(66, 66, 640).w == 13);  // grows past the plot before labels thin out
  CHECK(cell_size(68, 68, 640).w == 13);
  CHECK(cell_size(80, 80, 640).w == 8);
  CHECK(cell_size(512, 512, 640).w == 1);
  CHECK(cell_size(10, 20, 640).w == cell_size(10, 20, 640).h);
  CHECK(cell_size(1, 200, 640).h > cell_size(1, 200, 640).w);  // one row of many keys keeps a height
}

}  // namespace headscope::heatmap_test
