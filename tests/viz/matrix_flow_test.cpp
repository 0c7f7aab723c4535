#include "viz/scene/matrix_flow.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

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
