#include <doctest/doctest.h>

#include <cmath>

#include "core/io/trace_file.h"
#include "tests/support/paths.h"
#include "tests/support/worst.h"
#include "tests/viz/sample.h"
#include "tests/viz/scene_boxes.h"
#include "viz/export/raster.h"
#include "viz/scene/head_grid.h"
#include "viz/scene/head_map.h"

namespace headscope::real_pictures_test {

using namespace testing;

namespace {

/// Every cell of every head, in the pixels, against the weight in the trace.
void check_pixels(const Trace& trace, Scale scale) {
  const PangoText measure;
  const Theme& dark = theme("dark");
  const Colormap& colors = colormap("inferno");
  for (const AttentionMap& map : trace.maps) {
    HeadMapOptions options;
    options.head = map.id();
    options.scaling.scale = scale;
    options.values = false;
    const Scene scene = head_map_scene(trace, options, {dark, measure});
    CHECK(layout_fault(scene, measure) == "");
    const Heatmap& drawn = std::get<Heatmap>(find(scene, "map")->shape);
    const Image image = rasterize(scene, 1.5);
    int wrong = 0;
    for (Index q = 0; q < map.n_query(); ++q)
      for (Index k = 0; k < map.n_key(); ++k) {
        const double weight = map.weight(q, k), log = (std::log10(std::max(weight, 1e-4)) + 4) / 4;
        const Color expected = map.masked(q, k) ? dark.masked : colors.at(scale == Scale::log ? log : weight);
        const Point middle = drawn.cell(q, k).center();
        wrong += image.at(static_cast<int>(middle.x * 1.5), static_cast<int>(middle.y * 1.5)) != expected;
      }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("attention of the real GPT-2 is drawn cell for cell") {
  HEADSCOPE_NEEDS_SHARED(path, "captures-real/te_gpt2_0.npz");
  const auto trace = open_trace(*path);
  REQUIRE(trace->maps.size() == 144);
  check_pixels(*trace, Scale::linear);
  const PangoText measure;
  const Scene grid = head_grid_scene(*trace, {}, {theme("light"), measure});
  CHECK(layout_fault(grid, measure) == "");
  for (const AttentionMap& map : trace->maps) {
    const std::string id = "map." + std::to_string(map.layer()) + "." + std::to_string(map.head());
    CHECK(std::get<Heatmap>(find(grid, id)->shape).values.at(5, 0) == map.weight(5, 0));
  }
}

TEST_CASE("attention of a trained model over 66 tokens is drawn cell for cell, logarithmically") {
  HEADSCOPE_NEEDS_SHARED(path, "captures/gpt2-bpe-d64/story.npz");
  const auto trace = open_trace(*path);
  REQUIRE(trace->maps.size() == 16);
  check_pixels(*trace, Scale::log);
}

TEST_CASE("a long factored map is pooled from its own weights, as its dense twin is") {
  const Index n = 900, d = 8;
  const float scale = 0.35f;  // about 1/√d
  Random random(11);
  Tensor q = Tensor::zeros({n, d}), k = Tensor::zeros({n, d}), weights = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i)
    for (Index c = 0; c < d; ++c) q.ref(i, c) = random.normal(), k.ref(i, c) = random.normal();
  auto stats = std::make_shared<HeadStats>();
  for (Index i = 0; i < n; ++i) {
    std::vector<double> scores;
    double sum = 0;
    for (Index j = 0; j <= i; ++j) {
      double dot = 0;
      for (Index c = 0; c < d; ++c) dot += static_cast<double>(q.at(i, c)) * static_cast<double>(k.at(j, c));
      scores.push_back(scale * dot);
      sum += std::exp(scores.back());
    }
    for (Index j = 0; j <= i; ++j)
      weights.ref(i, j) = static_cast<float>(std::exp(scores[static_cast<std::size_t>(j)]) / sum);
    stats->log_sum_exp.push_back(std::log(sum));
  }
  const AttentionMap factored = AttentionMap::factored({}, q, k, scale, causal_rule(), stats);
  const MapCells a = map_cells(factored, 300), b = map_cells(dense_map(0, 0, weights, causal_rule()), 300);
  REQUIRE(a.bin == 3);
  REQUIRE(a.rows() == 300);
  CHECK(a.masked == b.masked);
  Worst worst;
  for (Index r = 0; r < 300; ++r)
    for (Index c = 0; c <= r; ++c)
      worst.add(std::abs(static_cast<double>(a.values.at(r, c)) - static_cast<double>(b.values.at(r, c))));
  CHECK(worst.value() < 1e-6);
}

}  // namespace headscope::real_pictures_test
