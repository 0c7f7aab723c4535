// Bars of singular values hold their numbers.

#include "viz/scene/singular_values.h"

#include <doctest/doctest.h>

#include <cmath>

#include "viz/export/pango_text.h"
#include "viz/scene/theme.h"

namespace headscope::singular_values_test {

namespace {

/// Filled boxes inside `plot` whose left edge lies in column `i` of `count`, lowest first.
std::vector<Rect> bars(const Scene& scene, const Rect& plot, int i, int count) {
  std::vector<Rect> found;
  for (const Mark& mark : scene.marks)
    if (const auto* box = std::get_if<Box>(&mark.shape); box && box->fill.a > 0) {
      const double column = (box->rect.x - plot.x) / plot.w * count;
      if (std::abs(column - i) < 0.01 && std::abs(box->rect.bottom() - plot.bottom()) < 0.01)
        found.push_back(box->rect);
    }
  return found;
}

}  // namespace

TEST_CASE("singular values: σ behind, z σ in front, z below on a scale to 2") {
  const PangoText measure;
  const Scene scene = singular_values_scene({{4, 2, 1}, {1, 0.5, 0}, Index{1}, 400, 240}, {theme("dark"), measure});
  const Rect values = std::get<Box>(find(scene, "values")->shape).rect, z = std::get<Box>(find(scene, "z")->shape).rect;
  const auto first = bars(scene, values, 0, 3), second = bars(scene, values, 1, 3), third = bars(scene, values, 2, 3);
  REQUIRE(first.size() == 2);
  REQUIRE(second.size() == 2);
  REQUIRE(third.size() == 1);  // nothing is left of the third
  CHECK(first[0].h == doctest::Approx(first[1].h));
  CHECK(second[0].h == doctest::Approx(first[0].h / 2));
  CHECK(second[1].h == doctest::Approx(first[0].h / 4));
  CHECK(third[0].h == doctest::Approx(first[0].h / 4));
  CHECK(bars(scene, z, 0, 3).at(0).h == doctest::Approx(z.h / 2));
  CHECK(bars(scene, z, 1, 3).at(0).h == doctest::Approx(z.h / 4));
  CHECK(bars(scene, z, 2, 3).empty());
  CHECK(z.y > values.bottom());
  CHECK(z.bottom() < scene.height);
}

}  // namespace headscope::singular_values_test
