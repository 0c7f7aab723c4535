// Maps for a room of given size, or a part of a map: what is written can be read, and says what the numbers are.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "core/base/error.h"
#include "core/trace/map_difference.h"
#include "tests/viz/sample.h"
#include "tests/viz/scene_boxes.h"
#include "viz/export/csv.h"
#include "viz/scene/arcs.h"
#include "viz/scene/head_atlas.h"
#include "viz/scene/head_map.h"
#include "viz/scene/head_rows.h"
#include "viz/scene/row_bars.h"

namespace headscope::readable_maps_test {

using namespace testing;

namespace {

const Heatmap& map_in(const Scene& scene, const std::string& id = "map") {
  const Mark* mark = find(scene, id);
  REQUIRE_MESSAGE(mark, "no mark " << id);
  return std::get<Heatmap>(mark->shape);
}

double smallest_type(const Scene& scene) {
  double least = 1e9;
  for (const Mark& mark : scene.marks)
    if (const auto* text = std::get_if<Text>(&mark.shape)) least = std::min(least, text->font.size);
  return least;
}

int count(const Scene& scene, const std::string& prefix) {
  int n = 0;
  for (const Mark& mark : scene.marks) n += mark.id.starts_with(prefix);
  return n;
}

/// The same weights minus themselves.
Trace no_difference(const Trace& trace) {
  Trace out = trace;
  for (AttentionMap& map : out.maps) map = map_difference(map, map);
  return out;
}

}  // namespace

TEST_CASE("a map for a room fits it, with type of 11 pixels or more, as many labels as have room, and no overlap") {
  const PangoText measure;
  for (const char* id : {"dark", "projector"}) {
    const Style style{theme(id), measure};
    for (const auto& [width, height] : {std::pair{560.0, 330.0}, {600.0, 420.0}, {900.0, 560.0}, {420.0, 800.0}})
      for (const Index n : {1, 3, 14, 30, 63, 99, 200, 700}) {
        CAPTURE(id);
        CAPTURE(width);
        CAPTURE(height);
        CAPTURE(n);
        HeadMapOptions options;
        options.room = {width, height};
        options.bare = true;
        if (n > 20) options.query = n - 4, options.key = 3;
        const Scene scene = head_map_scene(sample_trace(n, 1, 1), options, style);
        CHECK(scene.width <= width);
        CHECK(scene.height <= height);
        CHECK(smallest_type(scene) >= 11 * theme(id).text_scale);
        CHECK(layout_fault(scene, measure) == "");
        if (n > 20) {
          CHECK(find(scene, "label.query." + std::to_string(n - 4)));
          CHECK(find(scene, "label.key.3"));
        }
        // Pinning moves nothing.
        options.query = options.key = 0;
        const Rect before = map_in(scene).rect,
                   after = map_in(head_map_scene(sample_trace(n, 1, 1), options, style)).rect;
        CHECK(before.x == after.x);
        CHECK(before.y == after.y);
        CHECK(before.w == after.w);
      }
  }
}

TEST_CASE("a part of a map has its own rows and keys, their names, their numbers, and a small map of the whole") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const Trace trace = sample_trace(63, 1, 1);
  HeadMapOptions options;
  options.bare = true;
  options.room = {600, 420};
  options.region = MapRegion{30, 8, 20, 8};
  options.query = 33;
  options.key = 22;
  const Scene scene = head_map_scene(trace, options, style);
  const Heatmap& map = map_in(scene);
  REQUIRE(map.rows() == 8);
  REQUIRE(map.columns() == 8);
  for (Index r = 0; r < 8; ++r)
    for (Index c = 0; c < 8; ++c) {
      CHECK(map.values.at(r, c) == trace.map({0, 0}).weight(30 + r, 20 + c));
      CHECK(map.is_masked(r, c) == trace.map({0, 0}).masked(30 + r, 20 + c));
    }
  CHECK(count(scene, "label.query.") == 8);
  CHECK(find(scene, "label.query.30"));
  CHECK(find(scene, "label.key.27"));
  CHECK_FALSE(find(scene, "label.key.28"));
  CHECK(count(scene, "value.") > 4);
  CHECK(std::get<Box>(find(scene, "highlight.cell")->shape).rect.contains(map.cell(3, 2).center()));
  CHECK(layout_fault(scene, measure) == "");
  CHECK(scene.width <= 600);
  CHECK(scene.height <= 420);
  const Rect whole = map_in(scene, "minimap").rect, part = std::get<Box>(find(scene, "minimap.frame")->shape).rect;
  CHECK(whole.w >= 56);
  CHECK(part.x - whole.x == doctest::Approx(whole.w * 20 / 63));
  CHECK(part.y - whole.y == doctest::Approx(whole.h * 30 / 63));
  CHECK(part.w == doctest::Approx(whole.w * 8 / 63));
  CHECK(scene.description.find("queries 30 to 37, keys 20 to 27") != std::string::npos);

  // Its file has the same rows and keys, and not the small map.
  std::ostringstream csv;
  write_scene_csv(csv, scene);
  CHECK(csv.str().find("map,33,") != std::string::npos);
  CHECK(csv.str().find("map,29,") == std::string::npos);
  CHECK(csv.str().find("minimap,") == std::string::npos);
  const std::string line = fmt::format("map,37,{},27,{},{},", token_label(trace, 37), token_label(trace, 27),
                                       trace.map({0, 0}).weight(37, 27));
  CHECK(csv.str().find(line) != std::string::npos);

  // A row outside it is not marked; a part outside the map is refused.
  options.query = 2;
  CHECK_FALSE(find(head_map_scene(trace, options, style), "highlight.query"));
  options.region = MapRegion{60, 8, 0, 8};
  CHECK_THROWS_AS(head_map_scene(trace, options, style), Error);
  // Behind cached tokens rows count from the offset; a large part is pooled.
  HeadMapOptions cached;
  cached.region = MapRegion{2, 3, 0, 12};
  const Scene behind = head_map_scene(rectangular_trace(6, 30, 24, true), cached, style);
  CHECK(map_in(behind).first_row == 26);
  CHECK(find(behind, "label.query.26"));
  options.region = MapRegion{100, 900, 50, 900};
  options.query.reset(), options.key.reset();
  const Trace large = sample_trace(1000, 1, 1);
  const Scene pooled = head_map_scene(large, options, style);
  const Heatmap& cells = map_in(pooled);
  REQUIRE(cells.row_bin > 1);
  float most = 0;
  for (Index q = 0; q < cells.row_bin; ++q)
    for (Index k = 0; k < cells.row_bin; ++k)
      most = std::max(most, large.map({0, 0}).weight(100 + 5 * cells.row_bin + q, 50 + 2 * cells.row_bin + k));
  CHECK(cells.values.at(5, 2) == most);
}

TEST_CASE("a difference that is zero everywhere, or only rises, has the diverging scale with zero in its middle") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const Trace same = no_difference(sample_trace(9, 1, 1));
  HeadMapOptions options;
  const Scene scene = head_map_scene(same, options, style);
  const Heatmap& map = map_in(scene);
  CHECK(map.colormap == style.theme.diverging);
  CHECK(map.color(5, 2) == style.theme.diverging->at(0.5));
  CHECK(map.is_masked(2, 5));
  CHECK(map_in(scene, "colorbar").colormap == style.theme.diverging);
  CHECK(std::get<Text>(find(scene, "colorbar.tick.0")->shape).text == "−1");
  CHECK(layout_fault(scene, measure) == "");

  MapCells rising;
  rising.values = Tensor::from({1, 2}, std::array{0.f, 0.25f});
  const ColorNorm norm = norm_for(std::span(&rising, 1), MapKind::difference, {});
  CHECK(norm.low == -0.25);
  CHECK(norm.high == 0.25);
  CHECK_THROWS_AS(norm_for(std::span(&rising, 1), MapKind::difference, {Scale::log, {}, {}}), Error);

  RowBarsOptions row;
  row.query = 5;
  const Scene bars = row_bars_scene(same, row, style);
  CHECK(layout_fault(bars, measure) == "");
  CHECK(std::get<Box>(find(bars, "bar.2")->shape).rect.h == 0);
}

TEST_CASE("tooltips of bars and threads say it in words first, then where the number is") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  RowBarsOptions row;
  row.query = 1;
  CHECK(find(row_bars_scene(known_trace(), row, style), "bar.0")->tooltip ==
        "John looks at When: 0.25\nblocks.0.attn.hook_pattern[0][1, 0] = 0.25");
  CHECK(find(row_bars_scene(known_trace(), row, style), "bar.1")->tooltip.starts_with("John looks at itself: 0.75\n"));
  CHECK(find(arcs_scene(known_trace(), {}, style), "arc.2.0")->tooltip ==
        "<|endoftext|> looks at When: 0.20\nblocks.0.attn.hook_pattern[0][2, 0] = 0.2");

  const Trace trace = known_trace();
  const double hidden = std::numeric_limits<double>::quiet_NaN();
  CHECK(looks_at(trace, 1, 2, hidden) == "John cannot see <|endoftext|>");
  CHECK(looks_at(trace, 1, 0, 0.31, 0.99) == "John looks at When: 0.99 → 0.31");
  CHECK(looks_at(trace, 1, 0, 0.31, hidden) == "John looks at When: masked → 0.31");
  CHECK(looks_at(trace, 1, 0, 0.0012) == "John looks at When: 0.001");
  CHECK(looks_at(trace, 1, 0, 2e-12) == "John looks at When: under 0.001");
  CHECK(looks_at(trace, 1, 0, 0) == "John looks at When: 0");
  CHECK(looks_at(trace, 1, 0, -0.5) == "John looks at When: −0.50");
  CHECK(weight_says(trace, MapKind::difference, 1, 0, -0.31) == "John looks at When 0.31 less");
  CHECK(weight_says(trace, MapKind::difference, 1, 0, 0.5) == "John looks at When 0.50 more");
  CHECK(weight_says(trace, MapKind::difference, 1, 0, 0) == "John looks at When as much as before");
  CHECK(weight_says(trace, MapKind::probability, 1, 0, 0.25) == "John looks at When: 0.25");
  // A token of spaces keeps its sign; a long word gives way before the number does.
  Trace odd = known_trace();
  odd.tokens[0].label = "␣␣";
  odd.tokens[1].label = std::string(300, 'x');
  CHECK(looks_at(odd, 2, 0, 0.2) == "<|endoftext|> looks at ␣␣: 0.20");
  CHECK(looks_at(odd, 1, 0, 0.25).size() < 80);
  CHECK(looks_at(odd, 1, 0, 0.25).ends_with("0.25"));
}

TEST_CASE("rows of all heads: masked keys are neutral, a list names its heads, a difference is signed") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const Trace tokens = empty_trace(5);
  const float gone = std::numeric_limits<float>::quiet_NaN();
  const Tensor rows = Tensor::from({4, 5}, std::array{0.5f, 0.5f, 0.f, gone, gone, 0.1f, 0.2f, 0.7f, gone, gone,  //
                                                      1.f,  0.f,  0.f, gone, gone, 0.f,  0.3f, 0.7f, gone, gone});
  HeadRowsOptions options;
  options.heads = 2;
  options.query = 2;
  options.values = true;
  options.titled = true;
  const Scene layers = head_rows_scene(tokens, rows, options, style);
  CHECK(map_in(layers, "rows.1").values.at(0, 0) == 1.f);
  CHECK(map_in(layers, "rows.1").is_masked(0, 3));
  CHECK_FALSE(map_in(layers, "rows.1").is_masked(1, 0));
  CHECK(find(layers, "legend.masked"));
  CHECK(layout_fault(layers, measure) == "");
  CHECK(std::get<Text>(find(layers, "title")->shape).text == "All heads · query 2 “␣”");
  CHECK(std::get<Text>(find(layers, "label.key.2")->shape).font.weight == 600);
  CHECK(find(layers, "rows.1")->meaning == Meaning(HeadRows{{{1, 0}, {1, 1}}}));
  CHECK(find(layers, "colorbar")->meaning == Meaning(Aside::color_bar));

  options.listed = {{1, 1}, {0, 1}, {1, 0}, {0, 0}};
  options.selected = {1, 0};
  const Scene list = head_rows_scene(tokens, rows, options, style);
  CHECK(std::get<Text>(find(list, "label.row.0")->shape).text == "1.1");
  CHECK(std::get<Box>(find(list, "selected")->shape).rect.contains(map_in(list, "rows").cell(2, 1).center()));
  CHECK(find(list, "rows")->meaning == Meaning(HeadRows{options.listed}));
  CHECK(layout_fault(list, measure) == "");

  options.kind = MapKind::difference;
  const Scene zero = head_rows_scene(tokens, Tensor::zeros({4, 5}), options, style);
  CHECK(map_in(zero, "rows").colormap == style.theme.diverging);
  CHECK(map_in(zero, "rows").color(1, 1) == style.theme.diverging->at(0.5));
}

TEST_CASE("a head that is taken out is crossed through in the atlas") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  HeadAtlasOptions options;
  options.taken_out = {{1, 0}};
  for (const bool tiles : {false, true}) {
    options.values.clear();
    if (tiles) options.values = {0.1, 0.2, 0.3, 0.4}, options.values_title = "entropy";
    const Scene scene = head_atlas_scene(sample_trace(6, 2, 2), options, style);
    int lines = 0;
    for (const Mark& mark : scene.marks)
      if (const auto* line = std::get_if<Line>(&mark.shape)) lines += line->color == style.theme.key;
    CHECK(lines == 2);
    CHECK(find(scene, "head.1.0")->tooltip.find("taken out") != std::string::npos);
    CHECK(find(scene, "head.1.1")->tooltip.find("taken out") == std::string::npos);
  }
}

}  // namespace headscope::readable_maps_test
