// The pictures of blocks: bars over a text, strips of numbers, the two arrangements of a block.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/viz/scene_boxes.h"
#include "viz/export/pango_text.h"
#include "viz/scene/flow_diagram.h"
#include "viz/scene/number_strips.h"
#include "viz/scene/token_bars.h"

namespace headscope::block_scenes_test {

using testing::ink_box;

namespace {
// Made when first used: its thread reads the environment, which other tests write.
const PangoText& measure() {
  static const PangoText pango;
  return pango;
}

void check_inside(const Scene& scene) {
  for (const Mark& mark : scene.marks)
    if (const auto* line = std::get_if<Text>(&mark.shape)) {
      const auto box = ink_box(*line, mark.id, measure());
      CAPTURE(box.what);
      for (const Point& p : box.corners) {
        CHECK(p.x >= -0.5);
        CHECK(p.y >= -0.5);
        CHECK(p.x <= scene.width + 0.5);
        CHECK(p.y <= scene.height + 0.5);
      }
    }
}

const Box& box_of(const Scene& scene, const std::string& id) {
  const Mark* mark = find(scene, id);
  REQUIRE(mark);
  return std::get<Box>(mark->shape);
}

std::shared_ptr<const Trace> text(int n) {
  auto trace = std::make_shared<Trace>();
  for (int i = 0; i < n; ++i) trace->tokens.push_back({i, "", "tok" + std::to_string(i)});
  return trace;
}
}  // namespace

TEST_CASE("token bars are as high as their numbers, beside the levels they are compared with") {
  for (const char* name : {"dark", "light", "projector"}) {
    CAPTURE(name);
    const Style style{theme(name), measure()};
    TokenBars bars;
    bars.tokens = text(5);
    bars.first = 1;
    bars.values = {1, 4, 0, std::nan("")};
    bars.tooltips = {"a", "b", "c", "d"};
    bars.line = {1, 2.5, 5.0 / 3, std::nan("")};
    bars.line_title = "running mean";
    bars.levels = {{8, "ln V", "eight"}, {7.9, "unigram", ""}};
    bars.unit = "loss, nats";
    bars.marked = 2;
    const Scene scene = token_bars_scene(bars, style);
    const Rect one = box_of(scene, "bar.1").rect, four = box_of(scene, "bar.2").rect;
    CHECK(four.h == doctest::Approx(4 * one.h));
    CHECK(one.bottom() == doctest::Approx(four.bottom()));
    CHECK(box_of(scene, "bar.3").rect.h <= 1.01);
    CHECK_FALSE(find(scene, "bar.4"));
    const Rect level = box_of(scene, "level.ln V").rect;
    CHECK(four.bottom() - level.center().y == doctest::Approx(8 * one.h).epsilon(0.02));
    CHECK(find(scene, "bar.2")->tooltip == "b");
    CHECK(find(scene, "place.3")->tooltip == "c");  // of a bar of no height, too
    CHECK(box_of(scene, "place.3").rect.h >= 8 * one.h);
    CHECK(box_of(scene, "place.3").fill.a > 0);
    CHECK(box_of(scene, "bar.2").fill == style.theme.accent);
    const auto& line = std::get<Line>(find(scene, "line")->shape);
    REQUIRE(line.points.size() == 3);
    CHECK(four.bottom() - line.points[1].y == doctest::Approx(2.5 * one.h));
    check_inside(scene);
  }
}

TEST_CASE("a number stands above a bar where it has room, and no two touch") {
  const Style style{theme("dark"), measure()};
  TokenBars bars;
  bars.tokens = text(12);
  bars.values = {5.6e-5, 2.72e-5, 0.0001, 0.00017, 1.5, 2.4e-8, 7e-9, 0.00011, 0.5, 9.3e-5, 0.0001, 9.8e-5};
  bars.levels = {{6.46, "uniform ln V", ""}};
  bars.width = 588, bars.height = 280;
  const Scene scene = token_bars_scene(bars, style);
  std::vector<Text> numbers;
  for (const Mark& mark : scene.marks)
    if (const auto* line = std::get_if<Text>(&mark.shape); line && line->anchor == Anchor::middle && line->degrees == 0)
      numbers.push_back(*line);
  REQUIRE(numbers.size() >= 2);  // 1.5 and 0.5 at least
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
    const auto half = [](const Text& t) { return measure().width(t.text, t.font) / 2; };
    CHECK(numbers[i].at.x + half(numbers[i]) <= numbers[i + 1].at.x - half(numbers[i + 1]));
  }
}

TEST_CASE("a long text makes the bars' picture wider, not its bars thinner than can be hit") {
  const Style style{theme("dark"), measure()};
  TokenBars bars;
  bars.tokens = text(600);
  bars.values.assign(600, 1.0);
  bars.width = 900;
  const Scene scene = token_bars_scene(bars, style);
  CHECK(scene.width > 2400);
  CHECK(box_of(scene, "bar.599").rect.w >= 3);
}

TEST_CASE("strips show every number, each on its own scale or all on one") {
  for (const char* name : {"dark", "projector"})
    for (const double width : {900.0, 520.0}) {
      CAPTURE(width);
      const Style style{theme(name), measure()};
      NumberStrips strips;
      strips.unit = "numbers";
      strips.width = width;
      strips.strips = {{"token embedding", "14 × 3", "row 7 of W_E", Tensor::from({3}, std::vector<float>{1, -2, 0}),
                        "‖·‖ 2.236", "tip", false},
                       {"0 attention", "14 × 3", "Σ heads A v W_O with a long formula that has to give way",
                        Tensor::from({3}, std::vector<float>{40, 0, 0}), "‖·‖ 40", "", true}};
      Scene scene = number_strips_scene(strips, style);
      const auto strip = [&](const char* id) { return std::get<Heatmap>(find(scene, id)->shape); };
      CHECK(strip("strip.0").norm.high == 2);
      CHECK(strip("strip.1").norm.high == 40);
      CHECK(strip("strip.0").values.at(0, 1) == -2);
      CHECK(strip("strip.0").rect.x == strip("strip.1").rect.x);
      CHECK(find(scene, "name.0")->tooltip == "tip");
      check_inside(scene);
      strips.one_scale = true;
      scene = number_strips_scene(strips, style);
      CHECK(strip("strip.0").norm.high == 40);
      check_inside(scene);
    }
}

TEST_CASE("a flow: boxes one below another, and a line past those between") {
  for (const double height : {260.0, 430.0}) {
    CAPTURE(height);
    const Style style{theme("dark"), measure()};
    using Kind = FlowStep::Kind;
    FlowDiagram diagram;
    diagram.width = 600, diagram.height = height;
    diagram.columns = {{"Before",
                        "x + part(norm(x))",
                        {{Kind::value, "x", "1.5", "stream"},
                         {Kind::norm, "LayerNorm", "2", ""},
                         {Kind::part, "Attention", "3", ""},
                         {Kind::sum, "", "4", ""}},
                        {{0, 3}}},
                       {"Behind", "norm(x + part(x))", {{Kind::value, "x", "1.5", ""}, {Kind::sum, "", "", ""}}, {}}};
    const Scene scene = flow_diagram_scene(diagram, style);
    for (int i = 1; i < 4; ++i) {
      const Rect above = box_of(scene, "column.0." + std::to_string(i - 1)).rect,
                 here = box_of(scene, "column.0." + std::to_string(i)).rect;
      CHECK(here.y > above.bottom());
      CHECK(here.center().x == doctest::Approx(above.center().x));
    }
    CHECK(find(scene, "column.0.0")->tooltip == "stream");
    CHECK(box_of(scene, "column.1.0").rect.x >= 300);
    CHECK(std::get<Text>(find(scene, "column.0.2.number")->shape).text == "3");
    check_inside(scene);
  }
}

}  // namespace headscope::block_scenes_test
