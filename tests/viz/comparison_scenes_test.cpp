// The pictures of the Generate and Compare workspaces: numbers in their places, nothing on anything, nothing cut off.

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/metrics/trace_difference.h"
#include "core/trace/model_heads.h"
#include "tests/viz/sample.h"
#include "tests/viz/scene_boxes.h"
#include "viz/scene/candidates.h"
#include "viz/scene/head_pair.h"
#include "viz/scene/head_rows.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/token_pairs.h"

namespace headscope::comparison_scenes_test {

using namespace testing;

namespace {

template <class T>
const T& shape(const Scene& scene, const std::string& id) {
  const Mark* mark = find(scene, id);
  REQUIRE_MESSAGE(mark, "no mark named ", id);
  return std::get<T>(mark->shape);
}

std::vector<int> same(std::size_t n) {
  std::vector<int> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

TEST_CASE("one head in two runs: both maps and what differs, masked where there is no partner") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const Trace a = known_trace();
  Trace b = known_trace();
  const float weights[] = {1, 0, 0, 0.75f, 0.25f, 0, 0.2f, 0.1f, 0.7f};
  b.maps = {dense_map(0, 0, Tensor::from({3, 3}, weights), causal_rule())};
  const std::vector<int> partner = {0, 1, -1};
  HeadPairOptions options;
  options.partner = partner;
  const Scene scene = head_pair_scene(a, b, options, style);
  CHECK(shape<Heatmap>(scene, "map.a").values.at(1, 1) == 0.75f);
  CHECK(shape<Heatmap>(scene, "map.b").values.at(1, 1) == 0.25f);
  const auto& difference = shape<Heatmap>(scene, "map.difference");
  CHECK(difference.values.at(1, 0) == doctest::Approx(0.5));
  CHECK(difference.values.at(1, 1) == doctest::Approx(-0.5));
  CHECK_FALSE(difference.is_masked(1, 1));
  CHECK(difference.is_masked(2, 0));  // no partner
  CHECK(difference.is_masked(0, 1));  // the causal mask
  CHECK(difference.norm.low == -difference.norm.high);
  CHECK(difference.norm.high == doctest::Approx(0.5));
  CHECK(difference.colormap == style.theme.diverging);
  options.head.layer = 3;
  CHECK_THROWS_AS(head_pair_scene(a, b, options, style), Error);
}

TEST_CASE("pairs of maps of every size keep their text inside and apart") {
  const PangoText measure;
  for (const char* id : {"dark", "projector"})
    for (const Index n : {3, 14, 60, 700}) {
      CAPTURE(id);
      CAPTURE(n);
      const Trace a = sample_trace(n, 1, 1), b = sample_trace(n + 2, 1, 1);
      const std::vector<int> partner = same(static_cast<std::size_t>(n));
      HeadPairOptions options;
      options.partner = partner;
      options.name_a = "before";
      options.name_b = "a model with a long name";
      CHECK(layout_fault(head_pair_scene(a, b, options, {theme(id), measure}), measure) == "");
      options.bare = true;
      CHECK(layout_fault(head_pair_scene(a, a, options, {theme(id), measure}), measure) == "");
    }
}

TEST_CASE(
    "a pair of maps, or parts of them, takes no more than its room: labels thin out, nothing is written smaller") {
  const PangoText measure;
  for (const auto& [width, height] : {std::pair{590.0, 265.0}, {930.0, 430.0}, {1800.0, 900.0}})
    for (const Index n : {3, 14, 100, 700}) {
      CAPTURE(width);
      CAPTURE(n);
      const Trace a = sample_trace(n, 1, 1), b = sample_trace(n + 2, 1, 1);
      const std::vector<int> partner = same(static_cast<std::size_t>(n));
      HeadPairOptions options;
      options.partner = partner;
      options.bare = true;
      options.room = {width, height};
      const Style style{theme("dark"), measure};
      for (const Trace* other : {&a, &b}) {
        const Scene scene = head_pair_scene(a, *other, options, style);
        CHECK(layout_fault(scene, measure) == "");
        CHECK(scene.width <= width);
        CHECK(scene.height <= height);
      }
      if (n < 14) continue;
      HeadPairOptions part = options;
      part.region_a = MapRegion{n - 9, 8, 2, 8};
      part.region_b = MapRegion{n - 8, 8, 3, 8};
      const Scene scene = head_pair_scene(a, b, part, style);
      CHECK(layout_fault(scene, measure) == "");
      CHECK(scene.width <= width);
      CHECK(scene.height <= height);
      const auto& map = shape<Heatmap>(scene, "map.b");
      CHECK(map.first_row == n - 8);
      CHECK(map.first_column == 3);
      CHECK(map.values.at(1, 2) == b.maps[0].weight(n - 7, 5));
      // Colours are those of the whole.
      CHECK(shape<Heatmap>(scene, "map.difference").norm.high ==
            shape<Heatmap>(head_pair_scene(a, b, options, style), "map.difference").norm.high);
      part.region_b = MapRegion{n, 8, 0, 8};
      CHECK_THROWS_AS(head_pair_scene(a, b, part, style), Error);
    }
}

TEST_CASE("token strips: every token once, lines between partners, blocks inside the width") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  for (const Index n : {1, 9, 80}) {
    CAPTURE(n);
    const Trace a = sample_trace(n, 1, 1), b = sample_trace(n + 5, 1, 1);
    std::vector<int> partner = same(static_cast<std::size_t>(n));
    if (n > 8) partner[3] = -1;
    TokenPairsOptions options;
    options.partner = partner;
    options.width = 500;
    const Scene scene = token_pairs_scene(a, b, options, style);
    CHECK(layout_fault(scene, measure) == "");
    Rect last{};
    for (Index i = 0; i < n; ++i) {
      const Rect& chip = shape<Box>(scene, "a." + std::to_string(i)).rect;
      CHECK(chip.right() <= 500);
      CHECK((i == 0 || chip.y > last.y || chip.x >= last.right()));  // in reading order
      last = chip;
      const bool has = partner[static_cast<std::size_t>(i)] >= 0;
      CHECK((find(scene, "pair." + std::to_string(i)) != nullptr) == has);
      if (has) {  // partners stand in one block
        const Rect& other = shape<Box>(scene, "b." + std::to_string(i)).rect;
        CHECK(other.y > chip.y);
        CHECK(other.y < chip.y + 3 * chip.h);
      }
    }
    for (Index j = 0; j < n + 5; ++j) CHECK(find(scene, "b." + std::to_string(j)));
  }
}

TEST_CASE("rows of all heads: a strip for each, in its layer") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  const Trace tokens = empty_trace(20);
  const Tensor rows = sample_weights(6, 20, 20, false, 3);
  HeadRowsOptions options;
  options.heads = 3;
  options.selected = {1, 2};
  const Scene scene = head_rows_scene(tokens, rows, options, style);
  for (int layer = 0; layer < 2; ++layer)
    for (Index head = 0; head < 3; ++head)
      for (Index key = 0; key < 20; ++key)
        CHECK(shape<Heatmap>(scene, "rows." + std::to_string(layer)).values.at(head, key) ==
              rows.at(layer * 3 + head, key));
  const auto& map = shape<Heatmap>(scene, "rows.1");
  CHECK(shape<Box>(scene, "selected").rect.contains(map.cell(2, 5).center()));
  CHECK(layout_fault(scene, measure) == "");

  // Longer than the room: the largest of each bin stays.
  const Trace many = empty_trace(2000);
  Tensor spike = Tensor::zeros({3, 2000});
  spike.ref(1, 1234) = 0.5f;
  options.selected.reset();
  options.width = 400;
  const Scene pooled = head_rows_scene(many, spike, options, style);
  float most = 0;
  const auto& strip = shape<Heatmap>(pooled, "rows.0");
  for (Index c = 0; c < strip.columns(); ++c) most = std::max(most, strip.values.at(1, c));
  CHECK(most == 0.5f);
  CHECK(strip.rect.right() <= 400);
  CHECK(pooled.description.find(", max-pooled 2000 → ") != std::string::npos);
  spike.ref(1, 900) = -0.75f;  // with signs, what is furthest from 0 stays: the words say so
  options.kind = MapKind::effective;
  CHECK(head_rows_scene(many, spike, options, style).description.find(", pooled by largest |weight| 2000 → ") !=
        std::string::npos);
  // Of layers with states a row has two colours, whether or not it shows a number below 0.
  Trace state = many;
  state.model.dims.d_inner = 6;
  spike.ref(1, 900) = 0;
  CHECK_FALSE(is_signed(shape<Heatmap>(head_rows_scene(many, spike, options, style), "rows.0").norm));
  CHECK(is_signed(shape<Heatmap>(head_rows_scene(state, spike, options, style), "rows.0").norm));
  // Layers of four heads with a state and three that attend: each in its layer, with a scale of its own.
  Trace both = empty_trace(20);
  ModelDims& dims = both.model.dims;
  dims.layers = 2, dims.heads = 3, dims.state_heads = 4, dims.d_inner = 8;
  dims.mixers = {Mixer::state_space, Mixer::attention};
  HeadRowsOptions apart;
  apart.listed = every_head(dims);
  apart.scale = Scale::log;
  const Scene two = head_rows_scene(both, sample_weights(7, 20, 20, false, 3), apart, style);
  CHECK(shape<Heatmap>(two, "rows.0").values.dim(0) == 4);
  CHECK(shape<Heatmap>(two, "rows.1").values.dim(0) == 3);
  CHECK(is_signed(shape<Heatmap>(two, "rows.0").norm));
  CHECK(shape<Heatmap>(two, "rows.1").norm.scale == Scale::log);
  std::swap(apart.listed[0], apart.listed[6]);  // strongest first, say: one list
  CHECK(
      shape<Heatmap>(head_rows_scene(both, sample_weights(7, 20, 20, false, 3), apart, style), "rows").values.dim(0) ==
      7);
  // Where those that attend stand before the others, each kind has its scale.
  std::ranges::stable_partition(apart.listed, [&](const HeadId& head) { return dims.attends(head.layer); });
  const Scene kinds = head_rows_scene(both, sample_weights(7, 20, 20, false, 3), apart, style);
  CHECK(shape<Heatmap>(kinds, "rows").values.dim(0) == 3);
  CHECK(shape<Heatmap>(kinds, "rows").norm.scale == Scale::log);
  CHECK(shape<Heatmap>(kinds, "rows.states").values.dim(0) == 4);
  CHECK(is_signed(shape<Heatmap>(kinds, "rows.states").norm));
  CHECK(find(kinds, "rows.states")->meaning ==
        Meaning(HeadRows{std::vector(apart.listed.begin() + 3, apart.listed.end())}));
  CHECK(find(kinds, "label.row.6") != nullptr);
  options.kind = MapKind::probability;
  CHECK_THROWS_AS(head_rows_scene(tokens, sample_weights(5, 20, 20, false, 3), options, style), Error);
}

TEST_CASE("candidates: shares before and after, the cut ones told apart, the drawn number in its stretch") {
  const PangoText measure;
  CandidatesOptions options;
  options.first = {{7, "␣the", 0.5, 0.6, Candidate::Cut::none},
                   {3, "␣a", 0.3, 0.4, Candidate::Cut::none},
                   {5, "␣visualization", 0.1, 0, Candidate::Cut::top_k}};
  options.vocabulary = 100;
  options.kept = 2;
  options.chosen = 3;
  options.random = 0.7;
  for (const char* id : {"dark", "light", "projector"}) {
    CAPTURE(id);
    const Scene scene = candidates_scene(options, {theme(id), measure});
    CHECK(layout_fault(scene, measure) == "");
    const Rect &first = shape<Box>(scene, "stretch.7").rect, &second = shape<Box>(scene, "stretch.3").rect;
    CHECK(first.w == doctest::Approx(0.6 * 320 - 1));
    CHECK(second.x == doctest::Approx(0.6 * 320));
    const double x = shape<Line>(scene, "random").points.front().x;
    CHECK(x > second.x);
    CHECK(x < second.right());
    CHECK_FALSE(find(scene, "stretch.5"));
    CHECK(find(scene, "candidate.5"));
  }
  options.chosen = 42;
  options.chosen_far = Candidate{42, "x̂", 0.0001, 0.0002, Candidate::Cut::none};
  options.chosen_rank = 61;
  CHECK(find(candidates_scene(options, {theme("dark"), measure}), "candidate.42"));
}

}  // namespace headscope::comparison_scenes_test
