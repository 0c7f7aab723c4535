#include "viz/scene/matrix_flow.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "viz/color/color.h"
#include "viz/export/pango_text.h"
#include "viz/scene/line_chart.h"

namespace headscope::matrix_flow_test {

namespace {

const Heatmap& map_of(const Scene& scene, const char* id) {
  const Mark* mark = find(scene, id);
  REQUIRE(mark);
  return std::get<Heatmap>(mark->shape);
}

}  // namespace

TEST_CASE("matrices in a flow keep their own scale, break into lines and fold") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  MatrixFlow flow;
  flow.width = 620;
  flow.side = 200;
  const Tensor positive = Tensor::from({2, 2}, std::vector<float>{0, 1, 2, 4});
  const Tensor with_sign = Tensor::from({2, 3}, std::vector<float>{-3, 1, 2, 0, 0, 1});
  flow.matrices = {{"a", "A", "given", positive, {}, {}, {}, "value", false},
                   {"b", "B", "signed", with_sign, {0, 0, 0, 0, 1, 0}, {}, {}, "value", false},
                   {"c", "C", "share", positive, {}, 0.0, 1.0, "share", false},
                   {"d", "D", "folded", positive, {}, {}, {}, "value", true},
                   {"e", "E", "next line", Tensor::full({5, 1}, 2.0f), {}, {}, {}, "value", false, true}};
  const Scene scene = matrix_flow_scene(flow, style);
  CHECK(map_of(scene, "a").norm.low == 0);
  CHECK(map_of(scene, "a").norm.high == 4);
  CHECK(map_of(scene, "b").norm.low == -3);
  CHECK(map_of(scene, "b").norm.high == 3);
  CHECK(map_of(scene, "b").colormap->diverging);
  CHECK(map_of(scene, "b").is_masked(1, 1));
  CHECK(map_of(scene, "c").norm.high == 1);
  CHECK(!find(scene, "d"));
  CHECK(find(scene, "title.d"));
  CHECK(map_of(scene, "e").rect.x == 0);
  CHECK(map_of(scene, "e").rect.y > map_of(scene, "a").rect.bottom());
  CHECK(map_of(scene, "e").cell(0, 0).w > 8);  // a vector is a stripe that can be hit
  for (const Mark& mark : scene.marks)
    if (const auto* map = std::get_if<Heatmap>(&mark.shape)) {
      CHECK(map->rect.right() <= flow.width);
      CHECK(map->rect.bottom() <= scene.height);
    }
}

TEST_CASE("cells that have room show their number, in the ink that can be read; rows and columns are named") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  CHECK(cell_number(0.4011, 2) == "0.40");
  CHECK(cell_number(-0.001, 2) == "0.00");
  CHECK(cell_number(-1.5, 1) == "−1.5");
  CHECK(cell_number(0, 2) == "0");
  MatrixFlow flow;
  flow.width = 620;
  flow.side = 200;
  FlowMatrix weights;
  weights.id = weights.title = "P";
  weights.values = Tensor::from({2, 3}, std::vector<float>{0.4011f, 0.1978f, 0.4011f, 0, 1, 0});
  weights.masked = {0, 0, 0, 0, 0, 1};
  weights.low = 0, weights.high = 1;
  weights.rows = {"q", "a very long word indeed"};
  weights.columns = {"k1", "k2", "k3"};
  FlowMatrix output = weights, large = weights;
  output.id = output.title = "O";
  output.values = Tensor::from({2, 1}, std::vector<float>{20, 30});
  output.masked.clear(), output.columns.clear();
  CHECK(decimals_of(output) == 0);
  output.decimals = true;
  CHECK(decimals_of(output) == 1);
  CHECK(decimals_of(weights) == 2);
  large.id = large.title = "L";
  large.values = Tensor::full({40, 40}, 0.5f);
  large.masked.clear();
  large.rows = large.columns = std::vector<std::string>(40, "word");
  flow.matrices = {weights, output, large};
  const Scene scene = matrix_flow_scene(flow, style);
  const auto count = [&](const std::string& text) {
    return std::ranges::count_if(scene.marks, [&](const Mark& m) {
      const auto* t = std::get_if<Text>(&m.shape);
      return t && t->text == text;
    });
  };
  const FlowMatrix tiny = [&] {
    FlowMatrix out = output;
    out.values = Tensor::from({2, 1}, std::vector<float>{1e-7f, 3e-8f});
    return out;
  }();
  const auto numbers_of = [&](const FlowMatrix& matrix) {
    MatrixFlow alone = flow;
    alone.matrices = {matrix};
    return std::ranges::count_if(matrix_flow_scene(alone, style).marks, [](const Mark& m) {
      const auto* t = std::get_if<Text>(&m.shape);
      return t && (t->text.starts_with("0.00") || t->text == "20.0");
    });
  };
  CHECK(numbers_of(output) == 1);
  CHECK(numbers_of(tiny) == 0);  // all would be 0.0000: the colours say more
  CHECK(count("0.40") == 2);
  CHECK(count("0.20") == 1);
  CHECK(count("1.00") == 1);
  CHECK(count("20.0") == 1);
  CHECK(count("0.50") == 0);  // 40 × 40 cells have no room
  CHECK(count("k2") == 1);
  CHECK(count("q") == 2);
  CHECK(count("a very long word indeed") == 0);  // cut
  // Of 40 names of rows every k-th has room, and no two of them touch.
  std::vector<double> heights;
  for (const Mark& mark : scene.marks)
    if (const auto* t = std::get_if<Text>(&mark.shape); t && t->text == "word" && t->degrees == 0)
      heights.push_back(t->at.y);
  CHECK(heights.size() >= 8);
  for (std::size_t i = 1; i < heights.size(); ++i)
    CHECK(heights[i] - heights[i - 1] >= theme("dark").small_token().size);
  const auto& map = map_of(scene, "P");
  for (const Mark& mark : scene.marks)
    if (const auto* t = std::get_if<Text>(&mark.shape); t && t->text == "1.00") {
      CHECK(t->color == readable_on(map.color(1, 1), style.theme.dark_ink, style.theme.light_ink));
      CHECK(map.cell(1, 1).x < t->at.x);
      CHECK(t->at.x < map.cell(1, 1).right());
    }
  for (const Mark& mark : scene.marks)
    if (const auto* text = std::get_if<Text>(&mark.shape); text && text->degrees == 0) CHECK(text->at.x <= flow.width);
}

TEST_CASE("bars: from the ground to their values, the chosen one in the accent") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  LineChart chart;
  chart.bars = true;
  chart.y_low = 0;
  chart.width = 400, chart.height = 200;
  chart.series = {{"", style.theme.muted, {100, 200, 400}, {100, 200, 400}}};
  chart.marker = Point{200, 200};
  const Scene scene = line_chart_scene(chart, style);
  const auto& ground = std::get<Box>(find(scene, "plot")->shape).rect;
  for (int i = 0; i < 3; ++i) {
    const Mark* mark = find(scene, "bar.." + std::to_string(i));
    REQUIRE(mark);
    const auto& box = std::get<Box>(mark->shape);
    CHECK(box.rect.bottom() == doctest::Approx(ground.bottom()));
    CHECK(box.rect.h / ground.h == doctest::Approx(chart.series[0].y[static_cast<std::size_t>(i)] / 400).epsilon(0.01));
    CHECK((box.fill == style.theme.accent) == (i == 1));
  }
  CHECK(!find(scene, "marker"));
  const auto& number = std::get<Text>(find(scene, "number.")->shape);  // stands above the chosen bar
  CHECK(number.text == "200");
  const Rect& chosen = std::get<Box>(find(scene, "bar..1")->shape).rect;
  CHECK(number.at.x == doctest::Approx(chosen.center().x));
  CHECK(number.at.y < chosen.y);
  chart.marker = Point{400, 400};  // the highest: its number stays inside the picture
  const Scene high = line_chart_scene(chart, style);
  CHECK(std::get<Text>(find(high, "number.")->shape).at.y - style.theme.small_token().size >= 0);
}

TEST_CASE("a chart with both axes logarithmic: a power law is a straight line; dashes and decades") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  LineChart chart;
  chart.log_x = chart.log_y = chart.points = true;
  chart.width = 500, chart.height = 300;
  chart.y_title = "seconds", chart.x_title = "tokens";
  ChartSeries law{"square", {}, {}, {}};
  for (double n = 16; n <= 4096; n *= 4) law.x.push_back(n), law.y.push_back(1e-6 * n * n);
  ChartSeries theory = law;
  theory.title = "theory";
  theory.dashed = true;
  chart.series = {law, theory};
  const Scene scene = line_chart_scene(chart, style);
  const Mark* mark = find(scene, "line.square");
  REQUIRE(mark);
  const auto& points = std::get<Line>(mark->shape).points;
  REQUIRE(points.size() == 5);
  const double slope = (points[1].y - points[0].y) / (points[1].x - points[0].x);
  for (std::size_t i = 1; i < points.size(); ++i)
    CHECK((points[i].y - points[i - 1].y) / (points[i].x - points[i - 1].x) == doctest::Approx(slope));
  CHECK(!find(scene, "line.theory"));  // in pieces
  CHECK(find(scene, "point.square.0"));
  const auto written = [&](const std::string& text) {
    return std::ranges::any_of(scene.marks, [&](const Mark& m) {
      const auto* t = std::get_if<Text>(&m.shape);
      return t && t->text == text;
    });
  };
  CHECK(written("10⁻²"));
  CHECK(written("10"));
  CHECK(!written("0.05"));
}

}  // namespace headscope::matrix_flow_test
