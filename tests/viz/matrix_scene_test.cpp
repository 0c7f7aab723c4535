#include "viz/scene/matrix_scene.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/viz/scene_boxes.h"
#include "viz/export/pango_text.h"

namespace headscope::matrix_scene_test {

using testing::ink_box;

namespace {

const Heatmap& map_of(const Scene& scene) {
  const Mark* mark = find(scene, "matrix");
  REQUIRE(mark);
  return std::get<Heatmap>(mark->shape);
}
bool says(const Scene& scene, const std::string& text) {
  for (const Mark& mark : scene.marks)
    if (const auto* line = std::get_if<Text>(&mark.shape); line && line->text == text) return true;
  return false;
}
/// No text reaches out of the picture or stands on another one.
void check_tidy(const Scene& scene, const TextMeasure& measure) {
  std::vector<headscope::testing::InkBox> boxes;
  for (const Mark& mark : scene.marks)
    if (const auto* line = std::get_if<Text>(&mark.shape)) boxes.push_back(ink_box(*line, mark.id, measure));
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    CAPTURE(boxes[i].what);
    for (const Point& p : boxes[i].corners) {
      CHECK(p.x >= -0.5);
      CHECK(p.y >= -0.5);
      CHECK(p.x <= scene.width + 0.5);
      CHECK(p.y <= scene.height + 0.5);
    }
    for (std::size_t j = 0; j < i; ++j) {
      CAPTURE(boxes[j].what);
      CHECK_FALSE(overlap(boxes[i], boxes[j]));
    }
  }
}

}  // namespace

TEST_CASE("a head matrix that fills up: what is known has its colour, the rest waits") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  Matrix matrix = head_matrix(3, 4, std::vector{0.5, -0.25, 0.0, 0.125, 0.3});
  matrix.unit = "loss change, nats";
  const Scene scene = matrix_scene(matrix, style);
  const Heatmap& map = map_of(scene);
  CHECK(map.rows() == 3);
  CHECK(map.columns() == 4);
  CHECK(map.values.at(1, 0) == 0.3f);
  CHECK_FALSE(map.is_masked(1, 0));
  CHECK(map.is_masked(1, 1));
  CHECK(map.is_masked(2, 3));
  // Signed numbers: the same scale on both sides of a neutral middle.
  CHECK(map.norm.low == -0.5);
  CHECK(map.norm.high == 0.5);
  CHECK(map.unit(0, 2) == 0.5);
  CHECK(map.colormap == style.theme.diverging);
  CHECK(map.color(2, 3) == style.theme.masked);
  CHECK(says(scene, "not computed yet"));
  CHECK(says(scene, "−.25"));
  CHECK(says(scene, ".12"));
  CHECK(says(scene, "loss change, nats"));
  check_tidy(scene, measure);

  const Scene whole = matrix_scene(head_matrix(1, 2, std::vector{1.0, 3.0}), style);
  CHECK_FALSE(says(whole, "not computed yet"));
  CHECK(map_of(whole).norm.low == 0);
  CHECK(map_of(whole).norm.high == 3);
  CHECK(map_of(whole).colormap == style.theme.sequential);

  // What is told about 0 stands about it while nothing, or nothing but zeros, is known.
  for (const std::vector<double>& known : {std::vector<double>{}, {0.0, 0.0}}) {
    Matrix changes = head_matrix(1, 2, known);
    changes.diverging = true;
    const Scene early = matrix_scene(changes, style);
    CHECK(map_of(early).norm.low == -1);
    CHECK(map_of(early).norm.high == 1);
    CHECK(map_of(early).colormap == style.theme.diverging);
  }
}

TEST_CASE("a matrix over the tokens of a text, large and small, keeps its labels apart and says what has no value") {
  const PangoText measure;
  for (const char* name : {"dark", "projector"})
    for (const int tokens : {3, 12, 60, 300}) {
      CAPTURE(name);
      CAPTURE(tokens);
      const Style style{theme(name), measure};
      auto trace = std::make_shared<Trace>();
      for (int i = 0; i < tokens; ++i) trace->tokens.push_back({i, "word", "␣word" + std::to_string(i), -1, -1});
      std::vector<double> values(static_cast<std::size_t>(tokens) * 2, 0.5);
      values[1] = std::nan("");
      Matrix matrix = head_matrix(2, tokens, values);
      matrix.tokens = trace;
      matrix.column_title = "token →";
      matrix.low = -1, matrix.high = 1;
      matrix.width = 700, matrix.height = 300;
      const Scene scene = matrix_scene(matrix, style);
      CHECK(says(scene, "no value"));
      CHECK(map_of(scene).color(0, 1) == style.theme.missing);
      CHECK(map_of(scene).norm.low == -1);
      check_tidy(scene, measure);
    }
}

TEST_CASE("many heads in a small room: labels thin out, numbers stay away, nothing leaves the picture") {
  const PangoText measure;
  const Style style{theme("light"), measure};
  std::vector<double> values(48 * 48, 0.25);
  Matrix matrix = head_matrix(48, 48, values);
  matrix.width = 300, matrix.height = 260;
  const Scene scene = matrix_scene(matrix, style);
  CHECK_FALSE(find(scene, "row.0"));  // the title of the rows stands there
  CHECK_FALSE(find(scene, "row.1"));
  CHECK(find(scene, "row.2"));
  CHECK_FALSE(find(scene, "row.3"));
  CHECK_FALSE(says(scene, ".25"));
  check_tidy(scene, measure);
}

TEST_CASE("a square matrix stays square and inside its room, however many numbers it has; none of them is lost") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  for (const Index n : {3, 40, 300, 1863}) {
    CAPTURE(n);
    const auto trace = std::make_shared<Trace>();
    Matrix matrix;
    matrix.values = Tensor::full({n, n}, 0.01f);
    for (Index r = 0; r < n; ++r) {
      for (Index c = 0; c < n; ++c) matrix.pending.push_back(c > r);
      trace->tokens.push_back({static_cast<std::int32_t>(r), "", "word"});
      matrix.rows.emplace_back("word");
    }
    matrix.values.ref(n - 2, 1) = 0.75f;  // one bright number
    matrix.tokens = trace;
    matrix.square = true;
    matrix.largest_cell = 34;
    matrix.width = 700, matrix.height = 520;
    matrix.low = 0, matrix.high = 1;
    const Scene scene = matrix_scene(matrix, style);
    const Heatmap& map = map_of(scene);
    CHECK(map.rect.w == doctest::Approx(map.rect.h));
    CHECK(scene.width <= 701);
    CHECK(scene.height <= 521);
    const Index bin = map.row_bin;
    CHECK(map.rows() == (n + bin - 1) / bin);
    CHECK(map.columns() == map.rows());
    CHECK(map.column_bin == bin);
    CHECK(map.values.at((n - 2) / bin, 1 / bin) == 0.75f);
    if (n > 3) CHECK(map.is_masked(0, map.columns() - 1));
    if (n >= 300) CHECK(map.rect.w > 300);  // uses the room that there is
  }
}

}  // namespace headscope::matrix_scene_test
