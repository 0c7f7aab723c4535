// The picture of a word's way through a tree: its code, every branch inside the room, bars as long as their numbers.

#include "app/render/code_path.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "viz/export/pango_text.h"

namespace headscope::code_path_test {

TEST_CASE("a word's way through a tree: turns in order, what was not taken, clusters and costs to scale") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  MechanismPath path;
  path.leaf = "fox";
  path.product = 0.125, path.frequency = 0.01;
  for (int i = 0; i < 9; ++i) path.turns.push_back({i % 2, 0.5, 0.3, 3, "3 words"});
  path.clusters = {{"head", 20, 0.75, 64}, {"first cluster", 60, 0.25, 16}};
  path.costs = {{"plain", 1000}, {"tree", 100}};
  for (const double width : {520.0, 1100.0}) {
    CAPTURE(width);
    const Scene scene = code_path_scene(path, width, style);
    const auto text_of = [&](const std::string& begins) {
      return std::ranges::any_of(scene.marks, [&](const Mark& m) {
        const auto* t = std::get_if<Text>(&m.shape);
        return t && t->text.starts_with(begins);
      });
    };
    CHECK(text_of("code 010101010 · 9 steps"));
    CHECK(text_of("p(fox) = 0.50 · 0.50"));
    for (int i = 0; i < 9; ++i) CHECK(find(scene, "node." + std::to_string(i)));
    CHECK(find(scene, "leaf"));
    for (const Mark& mark : scene.marks) {
      if (const auto* box = std::get_if<Box>(&mark.shape)) {
        CHECK(box->rect.x >= 0);
        CHECK(box->rect.right() <= width + 1);
        CHECK(box->rect.bottom() <= scene.height);
      }
      if (const auto* text = std::get_if<Text>(&mark.shape)) {
        const double wide = measure.width(text->text, text->font);
        const double from = text->anchor == Anchor::middle ? text->at.x - wide / 2 : text->at.x;
        CHECK(from >= -0.5);
        CHECK(from + wide <= width + 0.5);
      }
    }
    const auto wide = [&](const char* id) { return std::get<Box>(find(scene, id)->shape).rect.w; };
    CHECK(wide("cluster.0") / wide("cluster.1") == doctest::Approx(20.0 / 60).epsilon(0.02));
    CHECK(wide("cluster.uses.0") / wide("cluster.uses.1") == doctest::Approx(3).epsilon(0.02));
    CHECK(wide("cost.1") / wide("cost.0") == doctest::Approx(0.1).epsilon(0.02));
  }
}

}  // namespace headscope::code_path_test
