// Pictures of what the reading pages found: which of their cells are numbers and which are masked.

#include "app/render/reading_pictures.h"

#include <doctest/doctest.h>

#include "core/base/nth.h"
#include "tests/viz/scene_boxes.h"
#include "viz/export/pango_text.h"
#include "viz/scene/theme.h"

namespace headscope::reading_pictures_test {

namespace {

/// Three tokens, one head; `weights` row by row.
std::shared_ptr<const Trace> of(const std::vector<float>& weights, std::shared_ptr<const AttentionRule> rule) {
  auto trace = std::make_shared<Trace>();
  trace->model.dims.layers = trace->model.dims.heads = 1;
  for (int i = 0; i < 3; ++i) trace->tokens.push_back({i, "", std::to_string(i)});
  const Tensor map = Tensor::from({3, 3}, weights);
  trace->maps.push_back(AttentionMap::dense({0, 0}, map, std::move(rule), stats_of_weights(map, nullptr)));
  return trace;
}

const std::vector<float> behind = {1, 0, 0, 0.5f, 0.5f, 0, 0.2f, 0.3f, 0.5f};
const std::vector<float> ahead = {0.2f, 0.3f, 0.5f, 0.2f, 0.3f, 0.5f, 0.2f, 0.3f, 0.5f};

int masked(const Matrix& matrix) {
  return static_cast<int>(std::ranges::count(matrix.pending, 1));
}

}  // namespace

TEST_CASE("a trace knows whether a head may look at a key behind its query") {
  CHECK_FALSE(of(behind, causal_rule())->sees_later_keys());
  CHECK(of(ahead, full_rule())->sees_later_keys());
  CHECK(of(behind, full_rule())->sees_later_keys());  // may, and gives it nothing
  CHECK_FALSE(of(behind, nullptr)->sees_later_keys());
  CHECK(of(ahead, nullptr)->sees_later_keys());
  CHECK_FALSE(Trace{}.sees_later_keys());
}

TEST_CASE("cells behind the query are masked in a causal model, and numbers where heads look both ways") {
  const Tensor values = Tensor::from({3, 3}, ahead);
  CHECK(masked(token_matrix(values, of(behind, causal_rule()), "unit")) == 3);
  CHECK(masked(token_matrix(values, of(ahead, full_rule()), "unit")) == 0);

  LogitAttribution found;
  found.of.position = 0;  // as that of CLS, which reads patches
  found.by_source = Tensor::from({1, 3}, std::vector<float>{0.25f, -0.5f, 2});
  CHECK(masked(source_matrix(found, of(behind, causal_rule()), {{0, 0}})) == 2);
  const Matrix read = source_matrix(found, of(ahead, full_rule()), {{0, 0}});
  CHECK(masked(read) == 0);
  CHECK(read.values.at(0, 2) == 2);
}

TEST_CASE("names at the ends of a V's lines keep clear of what is written below the axis") {
  static const PangoText measure;
  for (const double height : {110.0, 140.0, 186.0}) {
    CAPTURE(height);
    SinkReport report;
    report.ahead = true;
    for (int layer = 0; layer < 6; ++layer) {  // all end at the ground
      SinkLayer each;
      each.density = {6.0, 1.0, 0.5, 0.05, 0.01, 0.0};
      report.layers.push_back(each);
    }
    const Scene scene = v_shape_chart(report, 320, height, {theme("dark"), measure});
    std::vector<testing::InkBox> boxes;
    for (const Mark& mark : scene.marks)
      if (const auto* text = std::get_if<Text>(&mark.shape)) boxes.push_back(testing::ink_box(*text, mark.id, measure));
    const auto last = std::ranges::find_if(boxes, [](const testing::InkBox& box) { return box.what == "last token"; });
    REQUIRE(last != boxes.end());
    for (const testing::InkBox& box : boxes)
      if (box.id.starts_with("label.")) CHECK_MESSAGE(!testing::overlap(box, *last, 0), box.what);
  }
}

}  // namespace headscope::reading_pictures_test
