// The pictures of the Corpus workspace: points over two axes, and histograms.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "viz/export/pango_text.h"
#include "viz/scene/histogram.h"
#include "viz/scene/scatter.h"

namespace headscope::corpus_scenes_test {

namespace {
template <class T>
const T& shape(const Scene& scene, const std::string& id) {
  const Mark* mark = find(scene, id);
  REQUIRE_MESSAGE(mark, "no mark named ", id);
  return std::get<T>(mark->shape);
}
Point middle(const Rect& r) {
  return {r.x + r.w / 2, r.y + r.h / 2};
}
}  // namespace

TEST_CASE("a scatter puts points where their values are, and counts those without") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<ScatterPoint> points{{{0, 0}, "0.0", "", 0, 0, 0, 0, rgb(0xFFB13B)},
                                   {{0, 1}, "0.1", "", 1, 2, 0, 0, rgb(0xFFB13B)},
                                   {{0, 2}, "0.2", "", 0.5, 1, 0.1, 0.2, rgb(0xFFB13B)},
                                   {{0, 3}, "0.3", "", nan, 1, 0, 0, rgb(0xFFB13B)}};
  ScatterOptions options;
  options.x_low = 0, options.x_high = 1, options.y_low = 0, options.y_high = 2;
  options.chance = Point{0.25, 1.5};
  const Scene scene = scatter_scene(points, options, style);
  const Rect plot = shape<Box>(scene, "plot").rect;
  const Point low = middle(shape<Box>(scene, "head.0.0").rect), high = middle(shape<Box>(scene, "head.0.1").rect),
              half = middle(shape<Box>(scene, "head.0.2").rect);
  CHECK(low.x == doctest::Approx(plot.x));
  CHECK(low.y == doctest::Approx(plot.bottom()));
  CHECK(high.x == doctest::Approx(plot.right()));
  CHECK(high.y == doctest::Approx(plot.y));
  CHECK(half.x == doctest::Approx(middle(plot).x));
  CHECK(half.y == doctest::Approx(middle(plot).y));
  CHECK(find(scene, "head.0.3") == nullptr);
  CHECK(shape<Text>(scene, "missing").text == "1 without a value");
  CHECK(plot.right() <= scene.width);
  CHECK(plot.bottom() < scene.height);
  CHECK_NOTHROW(scatter_scene({}, options, style));
  CHECK_NOTHROW(scatter_scene({points[3]}, {}, style));
}

TEST_CASE("a histogram's bars hold all counts, and its deciles and mean stand where they are") {
  const PangoText measure;
  const Style style{theme("light"), measure};
  std::vector<std::uint32_t> counts(512, 0);
  counts[128] = 30, counts[129] = 10, counts[256] = 60;
  Histogram picture;
  picture.counts = counts;
  picture.low = 0, picture.high = 2;
  picture.deciles = {0.51, 0.52, 0.53, 0.54, 1.001, 1.001, 1.002, 1.002, 1.003};
  picture.mean = 0.8;
  picture.spread = 0.2;
  picture.color = rgb(0x6AA9FF);
  const Scene scene = histogram_scene(picture, style);
  double tallest = 0;
  int total = 0;
  Rect last{};
  for (const Mark& mark : scene.marks)
    if (mark.id.starts_with("bar.")) {
      last = std::get<Box>(mark.shape).rect;
      tallest = std::max(tallest, last.h);
      const auto colon = mark.tooltip.find(": ");
      REQUIRE(colon != std::string::npos);
      total += std::stoi(mark.tooltip.substr(colon + 2));
    }
  CHECK(total == 100);
  CHECK(last.h == tallest);  // 60 of 100
  const auto at = [&](const std::string& id) { return shape<Line>(scene, id).points.front().x; };
  CHECK(at("decile.1") < at("decile.5"));
  CHECK(at("decile.5") == doctest::Approx(last.x).epsilon(0.02));
  const double mean = shape<Line>(scene, "mean").points[1].x;
  // Linear: 0.8 lies between 0.51 and 1.001 as it does on the axis.
  CHECK(mean == doctest::Approx(at("decile.1") + (at("decile.5") - at("decile.1")) * (0.8 - 0.51) / (1.001 - 0.51)));
  std::fill(counts.begin(), counts.end(), 0u);
  CHECK(find(histogram_scene(picture, style), "bar.0") == nullptr);
}

}  // namespace headscope::corpus_scenes_test
