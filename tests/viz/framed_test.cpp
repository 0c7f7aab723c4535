#include "viz/scene/framed.h"

#include <doctest/doctest.h>

#include "tests/viz/sample.h"
#include "viz/export/pango_text.h"
#include "viz/scene/matrix_scene.h"
#include "viz/scene/theme.h"

namespace headscope::framed_test {

namespace {
Matrix two_by_three() {
  Matrix m;
  m.values = Tensor::from({2, 3}, std::vector<float>{1, -2, 3, 4, 5, 6});
  m.rows = {"a", "b"};
  m.columns = {"x", "y", "z"};
  m.unit = "apples";
  m.provenance = "counted by hand";
  return m;
}
}  // namespace

TEST_CASE("a framed picture keeps every mark, moved by the same step, between title and caption") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const Scene bare = matrix_scene(two_by_three(), style), whole = framed(bare, {"Apples", {}, "of a tree", {}}, style);
  const auto& before = std::get<Heatmap>(find(bare, "matrix")->shape);
  const auto& after = std::get<Heatmap>(find(whole, "matrix")->shape);
  const double dx = after.rect.x - before.rect.x, dy = after.rect.y - before.rect.y;
  CHECK(dx == margin);
  CHECK(dy > 24);
  const auto place = [](const Scene& scene, const char* id) { return std::get<Text>(find(scene, id)->shape).at; };
  CHECK(place(whole, "row.1").y - place(bare, "row.1").y == doctest::Approx(dy));
  CHECK(place(whole, "column.2").x - place(bare, "column.2").x == doctest::Approx(dx));
  CHECK(std::get<Text>(find(whole, "title")->shape).text == "Apples");
  CHECK(std::get<Text>(find(whole, "caption.0")->shape).text == "counted by hand");
  CHECK(place(whole, "caption.0").y < whole.height);
}

TEST_CASE("words in the cells of a matrix stand where its numbers would") {
  const PangoText measure;
  const Style style{theme("light"), measure};
  Matrix m = two_by_three();
  m.texts = {"one", "two", "three", "four", "a word that is far too long for its cell", "six"};
  const Scene scene = matrix_scene(m, style);
  int words = 0;
  bool cut = false;
  for (const Mark& mark : scene.marks)
    if (const auto* text = std::get_if<Text>(&mark.shape); text && text->anchor == Anchor::middle && mark.id.empty()) {
      words += text->text == "one" || text->text == "six";
      cut |= text->text.starts_with("a word") && text->text.ends_with("…");
    }
  CHECK(words == 2);
  CHECK(cut);
}

}  // namespace headscope::framed_test
