// Pictures of positions: what is drawn is what was computed.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "app/render/positions_picture.h"
#include "app/render/rotary_picture.h"
#include "tests/support/random_tensor.h"
#include "viz/export/pango_text.h"
#include "viz/scene/compose.h"
#include "viz/scene/rotary_dials.h"
#include "viz/scene/theme.h"

namespace headscope::positions_scenes_test {

using testing::random_tensor;

namespace {

RotaryView view_of(int d) {
  RotaryView view;
  view.parts = rotary_parts(row_of(random_tensor({1, d}, 1), 0), row_of(random_tensor({1, d}, 2), 0));
  view.query = 17;
  view.key = 4;
  view.scale = 0.25;
  view.context = 256;
  return view;
}

const Heatmap& map_of(const Scene& scene, const char* id) {
  const Mark* mark = find(scene, id);
  REQUIRE(mark);
  return std::get<Heatmap>(mark->shape);
}

}  // namespace

TEST_CASE("dials, curve, bars and maps of rotary positions fit their room in every theme") {
  const PangoText measure;
  RotaryView view = view_of(32);
  view.config.base = 500;
  for (const char* id : {"dark", "light", "projector"}) {
    const Style style{theme(id), measure};
    const Scene scenes[] = {rotary_dials_picture(view, 900, 400, style),
                            score_against_distance(view, 200, 900, 200, style), why_this_score(view, 900, 120, style),
                            rotary_wavelengths(view, 900, 300, style)};
    for (const Scene& scene : scenes) {
      CHECK(scene.width <= 901);
      for (const Mark& mark : scene.marks)
        if (const auto* box = std::get_if<Box>(&mark.shape)) {
          CHECK(box->rect.x >= -1);
          CHECK(box->rect.right() <= scene.width + 1);
          CHECK(box->rect.bottom() <= scene.height + 1);
        }
    }
    CHECK(find(scenes[0], "dial.15"));
    CHECK_FALSE(find(scenes[0], "dial.16"));
    CHECK(find(scenes[1], "marker"));
    CHECK(find(scenes[2], "part.15"));
    CHECK(find(scenes[3], "changed.15"));
    CHECK(find(scenes[3], "context"));
  }
}

TEST_CASE("the parts of a score add up, and every diagonal of the map is one number") {
  const RotaryView view = view_of(16);
  double sum = 0;
  for (const double part : view.split(17, 4)) sum += part;
  CHECK(sum == doctest::Approx(view.score(117, 104)));
  const MatrixMap matrix = score_by_positions(view, 32);
  for (Index d = 0; d < 32; ++d)
    for (Index n = 0; n + d < 32; ++n) CHECK(matrix.values.at(n + d, n) == matrix.values.at(d, 0));
  CHECK(static_cast<double>(matrix.values.at(17, 4)) == doctest::Approx(view.score(17, 4)).epsilon(1e-6));
  CHECK(matrix.masked[4 * 32 + 17] == 1);
  CHECK(matrix.marked == Cell{17, 4});
  // An encoder's queries see later keys, too: turned on by as much as the key is ahead.
  RotaryView both = view;
  both.causal = false;
  const MatrixMap whole = score_by_positions(both, 32);
  CHECK(std::ranges::count(whole.masked, 0) == 32 * 32);
  CHECK(static_cast<double>(whole.values.at(4, 17)) == doctest::Approx(view.score(4, 17)).epsilon(1e-6));
  CHECK(static_cast<double>(whole.values.at(0, 31)) == doctest::Approx(view.score(0, 31)).epsilon(1e-6));
  CHECK(whole.values.at(17, 4) == matrix.values.at(17, 4));
  const Tensor q = random_tensor({6, 16}, 5), k = random_tensor({6, 16}, 6);
  const MatrixMap half = head_scores(q, k, {}, RotaryLayout::half_split, 0.25, true),
                  all = head_scores(q, k, {}, RotaryLayout::half_split, 0.25, false);
  CHECK(std::ranges::count(half.masked, 0) == 21);
  CHECK(std::ranges::count(all.masked, 0) == 36);
  RotaryView pair;
  pair.parts = rotary_parts(row_of(q, 1), row_of(k, 4));
  pair.scale = 0.25;
  CHECK(static_cast<double>(all.values.at(1, 4)) == doctest::Approx(pair.score(1, 4)).epsilon(1e-5));
  CHECK(all.values.at(4, 1) == half.values.at(4, 1));
}

TEST_CASE("hands stand where the vectors were turned to") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  DialsOptions options;
  options.dials = {{.query_angle = 0.5, .query_turn = 1.0, .query_length = 1, .wavelength = 6, .tooltip = ""}};
  options.width = 200;
  const Scene scene = rotary_dials_scene(options, style);
  bool found = false;
  for (const Mark& mark : scene.marks)
    if (const auto* line = std::get_if<Line>(&mark.shape); line && line->points.size() == 2) {
      const Point from = line->points[0], to = line->points[1];
      CHECK(std::atan2(from.y - to.y, to.x - from.x) == doctest::Approx(1.5));
      found = true;
    }
  CHECK(found);
}

TEST_CASE("pictures of the other methods hold their numbers") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const Tensor q = random_tensor({20, 8}, 1), k = random_tensor({20, 8}, 2);
  const Scene binary = binary_picture(16, 4, {900, 600}, style);
  CHECK(map_of(binary, "0.map").values.at(13, 0) == 1.0f);
  CHECK(map_of(binary, "0.map").values.at(13, 1) == 0.0f);
  const Scene shaw = shaw_picture(q, k, 0.5, 3, 1, {1200, 600}, style);
  CHECK(map_of(shaw, "0.0.map").values.at(10, 2) == -3.0f);
  CHECK(map_of(shaw, "0.0.map").values.at(10, 11) == 1.0f);
  const Scene t5 = t5_picture(32, 128, false, {}, 20, {900, 600}, style);
  CHECK(map_of(t5, "0.map").values.at(18, 0) == 16.0f);
  const Scene alibi = alibi_picture(8, 2, 20, {900, 600}, style);
  CHECK(static_cast<double>(map_of(alibi, "0.map").values.at(9, 1)) == doctest::Approx(-1.0));  // 8 tokens, slope 1/8
  const Scene chunks = chunk_picture(6, 10, 18, {900, 600}, style);
  CHECK(map_of(chunks, "0.map").values.at(17, 0) == 9.0f);
  CHECK(map_of(chunks, "0.map").values.at(7, 5) == 2.0f);
  CHECK(map_of(chunks, "1.0.map").values.at(17, 0) == 2.0f);
  CHECK(find(transformer_xl_picture(q, k, 0.5, 1, {1200, 600}, style), "1.0.map"));
  CHECK(find(sinusoidal_picture(32, 64, 5, {900, 700}, style), "0.dial.15"));
  CHECK(find(learned_picture(random_tensor({30, 16}, 4), true, "", {900, 600}, style), "0.map"));
  const PermutedPicture picture{{"dog", "bites", "man"}, {2, 1, 0}, {{0, 0, 0}, {1, 0, 1}}, {"open", "causal"}};
  CHECK(find(permuted_picture(picture, {900, 600}, style), "map"));
}

TEST_CASE("scenes are put together with their names apart") {
  Scene a, b;
  a.width = 10, a.height = 20;
  b.width = 30, b.height = 5;
  a.add({Box{{0, 0, 10, 20}}, "box", ""});
  b.add({Box{{0, 0, 30, 5}}, "box", ""});
  const Scene parts[] = {a, b};
  const Scene across = beside(parts, 4), down = below(parts, 4);
  CHECK(across.width == 44);
  CHECK(across.height == 20);
  CHECK(std::get<Box>(find(across, "1.box")->shape).rect.x == 14);
  CHECK(down.width == 30);
  CHECK(down.height == 29);
  CHECK(std::get<Box>(find(down, "1.box")->shape).rect.y == 24);
}

}  // namespace headscope::positions_scenes_test
