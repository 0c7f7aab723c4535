// The GPU's heatmaps against the raster printer's, pixel by pixel: same colours, same cells, same gaps, same pooling.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <span>

#include "tests/gui/driver.h"
#include "viz/export/raster.h"
#include "viz/gl/heatmap_painter.h"
#include "viz/scene/theme.h"

namespace headscope::heatmap_painter_test {

namespace {

Heatmap sample(Index rows, Index columns, Rect rect, ColorNorm norm, const char* colors) {
  std::mt19937 random(static_cast<unsigned>(rows * 131 + columns));
  std::uniform_real_distribution<float> draw(norm.low < 0 ? -1.2f : 1e-5f, 1.2f);
  Heatmap map;
  map.rect = rect;
  map.values = Tensor::zeros({rows, columns});
  map.masked.assign(static_cast<std::size_t>(rows * columns), 0);
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c) {
      map.values.ref(r, c) = (r * 7 + c * 3) % 29 == 5 ? std::numeric_limits<float>::quiet_NaN() : draw(random);
      map.masked[static_cast<std::size_t>(r * columns + c)] = c > r ? 1 : 0;
    }
  map.values.ref(rows - 1, 0) = std::numeric_limits<float>::infinity();
  map.colormap = &colormap(colors);
  map.norm = norm;
  if (norm.scale == Scale::per_row) map.row_high = row_maxima(map.values, map.masked);
  map.masked_color = rgb(0x1B1F27);
  map.missing_color = rgb(0x2FA8A0);
  return map;
}

/// How far the GPU may be off: one step of 256 where a value lies on the border between two colours.
struct Difference {
  int pixels = 0, off = 0, worst = 0;
};

Difference compare(HeatmapPainter& painter, HeatmapSheets& sheets, std::span<const Heatmap* const> maps, double scale) {
  Scene scene;
  scene.width = 220, scene.height = 200;
  scene.background = {0, 0, 0, 255};
  for (const Heatmap* map : maps) scene.add({*map, "map", ""});
  const Image expected = rasterize(scene, scale);
  sheets.show(maps);
  HeatmapLayer layer;
  painter.paint(layer, maps, sheets, {expected.width, expected.height, scale, 0, 0});
  const std::vector<std::uint8_t> got = layer.read();
  REQUIRE(got.size() == expected.rgba.size());
  Difference d;
  for (int y = 0; y < expected.height; ++y)
    for (int x = 0; x < expected.width; ++x) {
      const auto i =
          4 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(expected.width) + static_cast<std::size_t>(x));
      const bool shown = got[i + 3] == 255;
      int most = 0;
      for (int k = 0; k < 3; ++k) {
        const int seen = shown ? got[i + static_cast<std::size_t>(k)] : 0;
        most = std::max(most, std::abs(seen - expected.rgba[i + static_cast<std::size_t>(k)]));
      }
      ++d.pixels;
      d.off += most > 0;
      d.worst = std::max(d.worst, most);
    }
  return d;
}

Difference compare(HeatmapPainter& painter, const Heatmap& map, double scale) {
  HeatmapSheets sheets;
  const Heatmap* const one = &map;
  return compare(painter, sheets, {&one, 1}, scale);
}

}  // namespace

TEST_CASE("the GPU colours every cell as the raster printer does") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window({.title = "test", .width = 320, .height = 320, .offscreen = true});
  HeatmapPainter painter;
  const ColorNorm linear{Scale::linear, 0, 1}, log{Scale::log, 1e-4, 1}, rows{Scale::per_row, 0, 1},
      sign{Scale::linear, -1, 1};
  for (const auto& [norm, colors] :
       {std::pair{linear, "inferno"}, {log, "paper"}, {rows, "viridis"}, {sign, "diverging-dark"}})
    for (const double scale : {1.0, 1.5, 2.0})
      for (const double gap : {0.0, 1.0, 3.0}) {
        Heatmap map = sample(14, 14, {10.5, 7.25, 182, 168}, norm, colors);
        map.gap = gap;
        CAPTURE(colors);
        CAPTURE(scale);
        CAPTURE(gap);
        const Difference d = compare(painter, map, scale);
        CHECK(d.pixels > 40000);
        CHECK(d.off <= d.pixels / 50);  // whole cells whose value lies on a border between two colours
        CHECK(d.worst <= 8);            // neighbouring colours of a table of 256
      }
}

TEST_CASE("the GPU shows the strongest of the cells that share a pixel, as the raster printer does") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window({.title = "test", .width = 320, .height = 320, .offscreen = true});
  HeatmapPainter painter;
  for (const auto& [rows, columns] : {std::pair<Index, Index>{300, 300}, {257, 999}, {500, 20}}) {
    const Heatmap map = sample(rows, columns, {3, 5, 150, 140}, {Scale::linear, 0, 1}, "inferno");
    const Difference d = compare(painter, map, 1);
    CHECK(d.off <= d.pixels / 50);
    CHECK(d.worst <= 8);
  }
}

TEST_CASE("one bright cell in a million is seen") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window({.title = "test", .width = 320, .height = 320, .offscreen = true});
  HeatmapPainter painter;
  Heatmap map = sample(2, 2, {0, 0, 100, 100}, {Scale::linear, 0, 1}, "inferno");
  map.values = Tensor::zeros({1000, 1000});
  map.values.ref(617, 333) = 1;
  map.masked.clear();
  HeatmapSheets sheets;
  const Heatmap* const one = &map;
  sheets.show({&one, 1});
  HeatmapLayer layer;
  painter.paint(layer, {&one, 1}, sheets, {100, 100, 1, 0, 0});
  const std::vector<std::uint8_t> got = layer.read();
  int bright = 0;
  for (std::size_t i = 0; i < got.size(); i += 4) bright += got[i] > 200;
  CHECK(bright == 1);
  CHECK(got[(61 * 100 + 33) * 4] > 200);
}

TEST_CASE(
    "many maps are painted at once, each with its own size, scale, colours, gap and place, in one sheet or many") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window({.title = "test", .width = 320, .height = 320, .offscreen = true});
  HeatmapPainter painter;
  const std::pair<ColorNorm, const char*> looks[] = {{{Scale::linear, 0, 1}, "inferno"},
                                                     {{Scale::log, 1e-4, 1}, "paper"},
                                                     {{Scale::per_row, 0, 1}, "viridis"},
                                                     {{Scale::linear, -1, 1}, "diverging-dark"}};
  std::vector<Heatmap> maps;
  for (int i = 0; i < 60; ++i) {  // some with more cells than pixels, some partly or wholly outside, some of nothing
    const auto& [norm, colors] = looks[i % 4];
    const Rect rect{i % 10 * 22.0, std::floor(i / 10) * 33.0 + 0.4, 20, 30};
    Heatmap map = sample(1 + i * 7 % 41, 1 + i * 5 % 37, rect, norm, colors);
    map.gap = i % 3;
    if (i == 17) map.values = Tensor::zeros({0, 5}), map.masked.clear(), map.row_high.clear();
    if (i == 23) map.rect.x = -400;
    maps.push_back(std::move(map));
  }
  std::vector<const Heatmap*> all;
  for (const Heatmap& map : maps) all.push_back(&map);
  for (const Index longest : {0, 64}) {
    CAPTURE(longest);
    for (const double scale : {1.0, 1.5}) {
      HeatmapSheets sheets(longest);
      const Difference d = compare(painter, sheets, all, scale);
      CHECK(d.off <= d.pixels / 50);
      CHECK(d.worst <= 8);
      CHECK(sheets.uploaded() == 60);
      CHECK((sheets.sheets() > 5) == (longest > 0));
      // Others in their places: a few, which are uploaded alone, and then most.
      for (const std::size_t many : {3, 48}) {
        std::vector<Heatmap> changed = maps;
        std::vector<const Heatmap*> others;
        for (std::size_t i = 0; i < changed.size(); ++i) {
          if (i % 20 < many / 3 && i != 17)
            for (float& value : (changed[i].values = changed[i].values.copy()).mutable_values()) value *= 0.5f;
          others.push_back(&changed[i]);
        }
        const Difference after = compare(painter, sheets, others, scale);
        CHECK(after.off <= after.pixels / 50);
        CHECK(after.worst <= 8);
        CHECK(sheets.uploaded() == many);
        const Difference back = compare(painter, sheets, all, scale);
        CHECK(back.worst <= 8);
      }
    }
  }
}

TEST_CASE("sheets hold the numbers they were given and no others") {
  HEADSCOPE_NEEDS_DISPLAY();
  Window window({.title = "test", .width = 320, .height = 320, .offscreen = true});
  const Heatmap map = sample(8, 9, {0, 0, 90, 80}, {Scale::linear, 0, 1}, "inferno");
  HeatmapSheets sheets;
  const auto uploads = [&](const Heatmap& shown) {
    const Heatmap* const one = &shown;
    sheets.show({&one, 1});
    return sheets.uploaded();
  };
  CHECK(uploads(map) == 1);
  CHECK(uploads(map) == 0);
  CHECK(sheets.bytes() == 8 * 10 * 5);  // a column for what rows are divided by
  Heatmap moved = map;
  moved.rect = {5, 5, 20, 20};
  moved.norm = {Scale::log, 1e-3, 1};
  CHECK(uploads(moved) == 0);  // place and scale are no reason to upload again
  Heatmap masked = map;
  masked.masked[0] = 1;
  CHECK(uploads(masked) == 1);
  Heatmap other = masked;
  other.values = map.values.copy();
  CHECK(uploads(other) == 1);
  HeatmapSheets small(9);
  const Heatmap* const one = &map;
  CHECK_THROWS_WITH_AS(small.show({&one, 1}),
                       "heatmap: expected fewer than 9 cells on a side, found 8 × 9\n  hint: a pooled map", Error);
  CHECK(small.sheets() == 0);
}

}  // namespace headscope::heatmap_painter_test
