#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/trace/map_difference.h"
#include "tests/viz/sample.h"
#include "tests/viz/scene_boxes.h"
#include "viz/scene/arcs.h"
#include "viz/scene/head_grid.h"
#include "viz/scene/head_map.h"
#include "viz/scene/row_bars.h"
#include "viz/scene/several_heads.h"
#include "viz/scene/text.h"

namespace headscope::scenes_test {

using namespace testing;

namespace {

template <class T>
const T& shape(const Scene& scene, const std::string& id) {
  const Mark* mark = find(scene, id);
  REQUIRE_MESSAGE(mark, "no mark " << id);
  return std::get<T>(mark->shape);
}

std::string text_of(const Scene& scene, const std::string& id) {
  return shape<Text>(scene, id).text;
}

std::vector<std::string> texts_with(const Scene& scene, const std::string& prefix) {
  std::vector<std::string> out;
  for (const Mark& mark : scene.marks)
    if (const auto* text = std::get_if<Text>(&mark.shape); text && mark.id.starts_with(prefix))
      out.push_back(text->text);
  return out;
}

}  // namespace

TEST_CASE("a head's map shows its weights, its tokens on both sides, its range and where it comes from") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  HeadMapOptions options;
  options.badge = {"previous token 0.75", rgb(0x6FD0B0)};
  options.facts = {{"Entropy", "0.94 nats"}};
  options.query = 1;
  options.key = 0;
  const Scene scene = head_map_scene(known_trace(), options, style);
  const Heatmap& map = shape<Heatmap>(scene, "map");
  CHECK(map.values.at(1, 1) == 0.75f);
  CHECK(map.is_masked(0, 1));
  CHECK_FALSE(map.is_masked(2, 1));
  CHECK(text_of(scene, "title") == "Layer 0 · Head 0");
  CHECK(text_of(scene, "subtitle").starts_with("sample · 3 tokens · “When Mary"));
  CHECK(text_of(scene, "badge.text") == "previous token 0.75");
  CHECK(text_of(scene, "fact.0") == "0.94 nats");
  CHECK(texts_with(scene, "label.query.") == std::vector<std::string>{"When", "␣John", "<|endoftext|>"});
  CHECK(texts_with(scene, "label.key.") == std::vector<std::string>{"When", "␣John", "<|endoftext|>"});
  CHECK(texts_with(scene, "value.") == std::vector<std::string>{"1.0", ".25", ".75", ".20", ".80"});
  CHECK(texts_with(scene, "colorbar.tick") == std::vector<std::string>{"0", "0.25", "0.5", "0.75", "1"});
  CHECK(text_of(scene, "colorbar.label") == "attention weight (probability), linear");
  CHECK(text_of(scene, "legend.masked") == "masked");
  CHECK(scene.description == "blocks.0.attn.hook_pattern[0] · headscope cpu f32");
  // Labels stand beside the middle of their own rows, the mark around its row.
  for (Index q = 0; q < 3; ++q)
    CHECK(shape<Text>(scene, "label.query." + std::to_string(q)).at.y - half_capital(theme("dark").token()) ==
          doctest::Approx(map.cell(q, 0).center().y));
  const Box& mark = shape<Box>(scene, "highlight.query");
  CHECK(mark.rect.contains(map.cell(1, 0).center()));
  CHECK(mark.rect.contains(map.cell(1, 2).center()));
  CHECK_FALSE(mark.rect.contains(map.cell(0, 0).center()));
  CHECK(shape<Text>(scene, "label.query.1").font.weight == 600);
  CHECK(shape<Text>(scene, "label.query.0").font.weight == 400);
}

TEST_CASE("scales reach the picture: logarithmic and per row") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  HeadMapOptions options;
  options.scaling.scale = Scale::log;
  const Scene log = head_map_scene(known_trace(), options, style);
  CHECK(shape<Heatmap>(log, "map").unit(1, 0) == doctest::Approx(std::log(0.25 / 1e-4) / std::log(1e4)));
  CHECK(texts_with(log, "colorbar.tick") == std::vector<std::string>{"≤ 10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "1"});
  options.scaling.scale = Scale::per_row;
  const Scene row = head_map_scene(known_trace(), options, style);
  CHECK(shape<Heatmap>(row, "map").unit(1, 0) == doctest::Approx(1.0 / 3));
  CHECK(shape<Heatmap>(row, "map").unit(2, 2) == doctest::Approx(1));
  CHECK(texts_with(row, "colorbar.tick").back() == "row max");
  // A range that cuts the largest weights off says so.
  options.scaling = {Scale::linear, {}, 0.5};
  CHECK(texts_with(head_map_scene(known_trace(), options, style), "colorbar.tick").back() == "≥ 0.5");
}

TEST_CASE("labels thin out to every k-th, with positions, when there is no room; the marked one stays") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const auto labels = [&](Index n, std::optional<Index> query) {
    HeadMapOptions options;
    options.query = query;
    return head_map_scene(sample_trace(n, 1, 1), options, style);
  };
  const Scene all = labels(66, {});
  CHECK(texts_with(all, "label.query.").size() == 66);
  CHECK(texts_with(all, "label.key.").size() == 66);
  const Scene thinned = labels(180, 101);
  const std::size_t shown = texts_with(thinned, "label.query.").size();
  CHECK(shown == 35);  // 3 px a cell: every 5th, and 101 in place of 100 and 105
  CHECK(find(thinned, "label.query.101"));
  CHECK_FALSE(find(thinned, "label.query.100"));
  CHECK(find(thinned, "label.query.95"));
  const Heatmap& map = shape<Heatmap>(thinned, "map");
  CHECK(shape<Text>(thinned, "label.query.95").at.y - half_capital(theme("dark").small_token()) ==
        doctest::Approx(map.cell(95, 0).center().y));
  CHECK(labels(800, {}).description == "blocks.0.attn.hook_pattern[0] · headscope cpu f32");  // still exact
  const Scene pooled = labels(1000, 999);
  CHECK(pooled.description == "blocks.0.attn.hook_pattern[0] · headscope cpu f32 · max-pooled 1000 × 1000 → 500 × 500");
  CHECK(shape<Heatmap>(pooled, "map").rows() == 500);
  CHECK(find(pooled, "label.query.999"));
}

TEST_CASE("the grid has every recorded head on one scale, its class outlined and named") {
  const PangoText measure;
  const Style style{theme("light"), measure};
  HeadGridOptions options;
  options.classes = {
      {1, 2, "previous token", rgb(0x6FD0B0)}, {0, 0, "induction", rgb(0xFFB454)}, {7, 0, "sink", rgb(0)}};
  options.selected = HeadId{1, 0};
  Trace trace = sample_trace(10, 3, 4);
  const Scene scene = head_grid_scene(trace, options, style);
  for (int layer = 0; layer < 3; ++layer)
    for (int head = 0; head < 4; ++head) {
      const Heatmap& map = shape<Heatmap>(scene, "map." + std::to_string(layer) + "." + std::to_string(head));
      CHECK(map.values.at(9, 9) == trace.map({layer, head}).weight(9, 9));
      CHECK(map.norm.high == 1);
      CHECK(map.rect.x == doctest::Approx(shape<Heatmap>(scene, "map.0." + std::to_string(head)).rect.x));
      CHECK(map.rect.y == doctest::Approx(shape<Heatmap>(scene, "map." + std::to_string(layer) + ".0").rect.y));
    }
  CHECK(shape<Box>(scene, "class.1.2").stroke == rgb(0x6FD0B0));
  CHECK(text_of(scene, "class.label.1.2") == "previous token");
  CHECK(texts_with(scene, "legend.class.") ==
        std::vector<std::string>{"induction · 1 head", "previous token · 1 head"});
  CHECK(find(scene, "selected"));
  // Holes among the recorded layers leave no holes in the picture.
  trace.maps.erase(trace.maps.begin() + 4, trace.maps.begin() + 8);
  const Scene holes = head_grid_scene(trace, {}, style);
  CHECK(texts_with(holes, "label.layer.") == std::vector<std::string>{"0", "2"});
  CHECK(shape<Heatmap>(holes, "map.2.0").rect.y ==
        doctest::Approx(shape<Heatmap>(scene, "map.1.0").rect.y).epsilon(0.1));
}

TEST_CASE("threads are the weights above the threshold, no more and no less, and the caption counts them") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  ArcsOptions options;
  options.threshold = 0.2;
  const Scene scene = arcs_scene(known_trace(), options, style);
  CHECK(find(scene, "arc.0.0"));
  CHECK(find(scene, "arc.1.0"));
  CHECK(find(scene, "arc.1.1"));
  CHECK(find(scene, "arc.2.0"));
  CHECK(find(scene, "arc.2.2"));
  CHECK_FALSE(find(scene, "arc.2.1"));
  CHECK(shape<Curve>(scene, "arc.1.1").width > shape<Curve>(scene, "arc.1.0").width);
  CHECK(shape<Curve>(scene, "arc.1.1").color.a > shape<Curve>(scene, "arc.1.0").color.a);
  CHECK(scene.description.starts_with("5 of 6 weights are 0.2 or more and hold 100 % of all attention"));
  options.skip_first = true;
  const Scene without = arcs_scene(known_trace(), options, style);
  CHECK_FALSE(find(without, "arc.0.0"));
  CHECK(without.description.starts_with(
      "2 of 6 weights are 0.2 or more and hold 52 % of all attention; key 0 is left out"));
  options = {};
  options.most = 2;
  CHECK(arcs_scene(known_trace(), options, style).description.find("the strongest 2 are drawn") != std::string::npos);
}

TEST_CASE("bars stand as high as the weights of the row, masked keys as a flat field") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  RowBarsOptions options;
  options.query = 1;
  options.height = 200;
  const Scene scene = row_bars_scene(known_trace(), options, style);
  CHECK(shape<Box>(scene, "bar.0").rect.h == doctest::Approx(50));  // ¼ of an axis that ends at 1
  CHECK(shape<Box>(scene, "bar.1").rect.h == doctest::Approx(150));
  CHECK(shape<Box>(scene, "masked.2").fill == theme("dark").masked);
  CHECK_FALSE(find(scene, "bar.2"));
  CHECK(texts_with(scene, "value.") == std::vector<std::string>{"0.75", "0.25"});
  CHECK(text_of(scene, "title") == "Layer 0 · Head 0 · query 1 “␣John”");
}

TEST_CASE("the number of a bar that hangs down stands under it, or over the line where labels would be in its way") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  RowBarsOptions options;
  options.query = 1;
  options.height = 200;
  const auto with = [&](float first) {
    const auto map = [](float of_first) {
      const float weights[] = {1, 0, 0, of_first, 1 - of_first, 0, 0, 0, 1};
      return dense_map(0, 0, Tensor::from({3, 3}, weights), causal_rule());
    };
    Trace trace = known_trace();
    trace.maps[0] = map_difference(map(first), map(1));
    return row_bars_scene(trace, options, style);
  };
  const Scene far = with(0.01f);  // by 0.99 of an axis that ends at 1
  const Rect hanging = shape<Box>(far, "bar.0").rect;
  CHECK(hanging.h == doctest::Approx(99));
  CHECK(shape<Text>(far, "value.0").text == "−0.99");
  CHECK(shape<Text>(far, "value.0").at.y < hanging.y);
  const Scene near = with(0.7f);  // by 0.3 of 0.5
  const Rect shorter = shape<Box>(near, "bar.0").rect;
  CHECK(shorter.h == doctest::Approx(60));
  CHECK(shape<Text>(near, "value.0").at.y > shorter.bottom());
}

TEST_CASE("wrong wishes are errors that say what would be right") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const Trace trace = known_trace();
  HeadMapOptions options;
  options.head = {1, 0};
  CHECK_THROWS_AS(head_map_scene(trace, options, style), Error);
  options = {};
  options.query = 3;
  CHECK_THROWS_WITH_AS(head_map_scene(trace, options, style), doctest::Contains("from 0 to 2"), Error);
  CHECK_THROWS_AS(head_grid_scene(Trace{}, {}, style), Error);
  CHECK_THROWS_AS(several_heads_scene(trace, {}, style), Error);
  RowBarsOptions row;
  row.query = -1;
  CHECK_THROWS_AS(row_bars_scene(trace, row, style), Error);
  ArcsOptions arcs;
  arcs.threshold = std::nan("");
  CHECK_THROWS_AS(arcs_scene(trace, arcs, style), Error);
}

TEST_CASE("threads fill the room they are given, and no more of it than that") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  for (const Index tokens : {6, 20, 60}) {
    const Trace trace = sample_trace(tokens, 1, 1);
    ArcsOptions options;
    options.bare = true;
    const Scene paper = arcs_scene(trace, options, style);
    options.width = 2400, options.height = 2000;
    const Scene wide = arcs_scene(trace, options, style);
    CAPTURE(tokens);
    CHECK(wide.height > 1.5 * paper.height);
    CHECK(wide.height <= 2000);
    CHECK(wide.width <= 2400);
    if (tokens >= 20) CHECK(wide.width > 1.5 * paper.width);
    options.width = 620, options.height = 480;  // never smaller than on paper: the view shrinks or scrolls it
    CHECK(arcs_scene(trace, options, style).height >= paper.height);
  }
}

}  // namespace headscope::scenes_test
