// A row of attention over the picture whose patches its keys are.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "core/base/error.h"
#include "core/io/trace_file.h"
#include "tests/support/paths.h"
#include "viz/export/pango_text.h"
#include "viz/export/raster.h"
#include "viz/export/svg.h"
#include "viz/scene/patch_map.h"
#include "viz/scene/theme.h"

namespace headscope::patch_map_test {

namespace {
// CLS looks: 0.125 at itself, 0 at the red patch, 0.125 at green, 0.25 at blue, 0.5 at white. Patches of 3 × 2 pixels.
std::shared_ptr<const Trace> picture() {
  return open_trace(testing::reference("attention") / "picture.npz");
}

Scene scene_of(const Trace& trace, const PatchMapOptions& options) {
  static const PangoText measure;
  return patch_map_scene(trace, options, {theme("dark"), measure});
}

const Box& box(const Scene& scene, const char* id) {
  const Mark* mark = find(scene, id);
  REQUIRE(mark);
  return std::get<Box>(mark->shape);
}

/// What is seen at a share of the picture's width and height.
Color seen(const Scene& scene, double across, double down) {
  const Rect r = std::get<Pixels>(find(scene, "picture")->shape).rect;
  return rasterize(scene, 1).at(static_cast<int>(r.x + across * r.w), static_cast<int>(r.y + down * r.h));
}
}  // namespace

TEST_CASE("every patch lies over its own pixels, the more opaque the larger its weight") {
  const auto trace = picture();
  const Scene scene = scene_of(*trace, {.query = 0, .plot = 600});
  const Pixels& pixels = std::get<Pixels>(find(scene, "picture")->shape);
  CHECK(pixels.rect.w == 600);
  CHECK(pixels.rect.h == 400);
  CHECK(pixels.width == 6);
  const Rect white = box(scene, "patch.1.1").rect;
  CHECK(white.x == pixels.rect.x + 300);
  CHECK(white.y == pixels.rect.y + 200);
  CHECK(white.w == 300);
  CHECK(white.h == 200);
  CHECK(box(scene, "patch.0.0").fill.a == 0);    // weight 0 leaves the picture as it is
  CHECK(box(scene, "patch.1.1").fill.a == 204);  // the largest: 0.8 of 255
  CHECK(box(scene, "patch.1.0").fill.a == 102);
  CHECK(box(scene, "patch.0.1").fill.a == 51);
  CHECK(seen(scene, 0.25, 0.25) == Color{255, 0, 0, 255});
  const Color top = with_opacity(theme("dark").sequential->at(1), 0.8);
  const Color blended = over(top, {255, 255, 255, 255}), there = seen(scene, 0.75, 0.75);
  CHECK(std::abs(there.r - blended.r) <= 2);
  CHECK(std::abs(there.g - blended.g) <= 2);
  CHECK(std::abs(there.b - blended.b) <= 2);
  CHECK(find(scene, "patch.1.0")->tooltip == "<0> looks at 1,0: 0.25\nblocks.0.attn.hook_pattern[0][0, 3] = 0.25");
  CHECK(*meaning<TokenAt>(find(scene, "patch.1.0")) == TokenAt{3});
  CHECK_FALSE(find(scene, "query"));  // CLS is no patch
  CHECK(scene.description.find("0.875 on the picture, 0.125 on <0>; 2 × 2 patches over 6 × 4 pixels") == 0);
  REQUIRE(scene.series.size() == 1);
  CHECK(scene.series[0].y == std::vector<double>{0, 0.125, 0.25, 0.5});

  const Scene of_patch = scene_of(*trace, {.query = 3, .plot = 600});
  CHECK(box(of_patch, "query").rect.x == pixels.rect.x);
  CHECK(box(of_patch, "query").rect.y == std::get<Pixels>(find(of_patch, "picture")->shape).rect.y + 200);
}

TEST_CASE("between the middles of patches smooth weights run straight") {
  const Scene scene = scene_of(*picture(), {.query = 0, .smooth = true, .plot = 600});
  const Pixels& overlay = std::get<Pixels>(find(scene, "overlay")->shape);
  REQUIRE(overlay.width == 512);
  const auto opacity = [&](double across, double down) {
    const auto x = static_cast<std::size_t>(across * overlay.width),
               y = static_cast<std::size_t>(down * overlay.height);
    return static_cast<int>((*overlay.rgba)[4 * (y * static_cast<std::size_t>(overlay.width) + x) + 3]);
  };
  CHECK(opacity(0.05, 0.05) == 0);  // beyond the outermost middles they stay
  CHECK(opacity(0.95, 0.95) == 204);
  CHECK(std::abs(opacity(0.5, 0.95) - (102 + 204) / 2) <= 1);          // between blue and white
  CHECK(std::abs(opacity(0.5, 0.5) - (0 + 51 + 102 + 204) / 4) <= 1);  // in the middle of all four
  CHECK(box(scene, "patch.1.1").fill.a == 0);                          // to be pointed at, not seen
}

TEST_CASE("a picture between texts, a grid without a picture, a panel's room, and an SVG") {
  const auto cross = open_trace(testing::reference("attention") / "picture_cross.npz");
  const Scene words = scene_of(*cross, {.query = 1});
  CHECK(words.title.find("query 1 “dog”") != std::string::npos);
  CHECK_FALSE(find(words, "query"));
  const auto alone = open_trace(testing::reference("attention") / "grid_alone.npz");
  const Scene bare_grid = scene_of(*alone, {.query = 0, .plot = 200});
  CHECK_FALSE(find(bare_grid, "picture"));
  CHECK(box(bare_grid, "patch.0.0").fill.a == 255);  // nothing lies under it
  for (const double width : {300.0, 800.0}) {
    const Scene panel = scene_of(*picture(), {.query = 0, .room = PatchMapOptions::Room{width, 400}});
    CHECK(panel.width <= width);
    CHECK(panel.height <= 400);
  }
  const std::string svg = encode_svg(scene_of(*picture(), {.query = 0, .smooth = true}), {});
  CHECK(svg.find("<image id=\"picture\"") != std::string::npos);
  CHECK(svg.find("<image id=\"overlay\"") != std::string::npos);
  CHECK_THROWS_WITH_AS(scene_of(*picture(), {.query = 5}), doctest::Contains("a position from 0 to 4"), Error);
  CHECK_THROWS_WITH_AS(scene_of(*open_trace(testing::reference("npz") / "attention.npz"), {}),
                       doctest::Contains("a trace whose keys are patches"), Error);
}

TEST_CASE("the picture alone is as large as asked, and frames the patch that stands out") {
  const auto trace = picture();
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const Scene scene = picture_thumbnail(*trace->picture, 4, 72, style);
  CHECK(scene.width == 72);
  CHECK(scene.height == 48);
  CHECK(seen(scene, 0.25, 0.25) == Color{255, 0, 0, 255});
  const Box& frame = box(scene, "query");
  CHECK(frame.rect.x == 36);
  CHECK(frame.rect.y == 24);
  CHECK(frame.rect.w == 36);
  CHECK(frame.stroke == style.theme.query);
  CHECK_FALSE(find(picture_thumbnail(*trace->picture, 0, 72, style), "query"));  // CLS is no patch
  CHECK_FALSE(find(picture_thumbnail(*trace->picture, std::nullopt, 72, style), "query"));
}

}  // namespace headscope::patch_map_test
