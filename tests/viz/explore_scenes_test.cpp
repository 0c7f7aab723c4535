// The pictures of the Explore workspace: atlas, charts, steps, q·k split.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/attention/positions/disentangled.h"
#include "core/attention/softmax_attention.h"
#include "core/base/error.h"
#include "tests/support/random_tensor.h"
#include "viz/export/pango_text.h"
#include "viz/scene/head_atlas.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/score_split.h"

namespace headscope::explore_scenes_test {

using testing::random_tensor;

namespace {

/// Two layers of three heads over eight tokens, attention computed by the library itself.
Trace factored_trace(Index n = 8) {
  Backend backend(1);
  Trace trace;
  trace.model.name = "sample";
  trace.model.dims = {2, 3, 3, 4, 12, 0, 16};
  for (Index i = 0; i < n; ++i)
    trace.tokens.push_back({static_cast<std::int32_t>(i), "t", "t" + std::to_string(i), -1, -1});
  for (int layer = 0; layer < 2; ++layer) {
    AttentionInput in;
    in.q = random_tensor({n, 3, 4}, 1);
    in.k = random_tensor({n, 3, 4}, 2);
    in.v = random_tensor({n, 3, 4}, 3);
    in.scale = 0.5f;
    in.rule = causal_rule();
    in.layer = layer;
    in.storage = MapStorage::factored;
    AttentionOutput out = softmax_attention(in, backend, nullptr, {});
    std::ranges::move(out.maps, std::back_inserter(trace.maps));
  }
  return trace;
}

template <class T>
const T& shape(const Scene& scene, const std::string& id) {
  const Mark* mark = find(scene, id);
  REQUIRE_MESSAGE(mark, "no mark named ", id);
  return std::get<T>(mark->shape);
}

}  // namespace

TEST_CASE("the atlas holds every head in its place, with its own weights, inside the room it was given") {
  const Trace trace = factored_trace();
  const PangoText measure;
  const Style style{theme("dark"), measure};
  HeadAtlasOptions options;
  options.width = 300;
  options.classes = {{1, 2, "induction", rgb(0xFFB13B)}};
  const Scene scene = head_atlas_scene(trace, options, style);
  CHECK(scene.width == 300);
  for (const AttentionMap& map : trace.maps) {
    const auto& drawn = shape<Heatmap>(scene, "head." + std::to_string(map.layer()) + "." + std::to_string(map.head()));
    CHECK(drawn.rect.right() <= 300);
    CHECK(drawn.rect.bottom() <= scene.height);
    for (Index i = 0; i < 8; ++i)
      for (Index j = 0; j < 8; ++j) CHECK(std::abs(drawn.values.at(i, j) - map.weight(i, j)) < 1e-6f);
  }
  CHECK(shape<Heatmap>(scene, "head.0.1").rect.x > shape<Heatmap>(scene, "head.0.0").rect.x);
  CHECK(shape<Heatmap>(scene, "head.1.0").rect.y > shape<Heatmap>(scene, "head.0.0").rect.y);

  options.order = {4, 0};  // sorted and filtered: two heads, in this order
  const Scene sorted = head_atlas_scene(trace, options, style);
  CHECK(shape<Heatmap>(sorted, "head.1.1").rect.x < shape<Heatmap>(sorted, "head.0.0").rect.x);
  CHECK(find(sorted, "head.0.1") == nullptr);
}

TEST_CASE("tiles of a metric take their colour from the theme's map, and say so when there is no value") {
  const Trace trace = factored_trace();
  const PangoText measure;
  const Style style{theme("dark"), measure};
  HeadAtlasOptions options;
  options.values = {0, 0.5, 1, std::nan(""), 0.25, 2};
  options.values_title = "sink mass";
  const Scene scene = head_atlas_scene(trace, options, style);
  CHECK(shape<Box>(scene, "head.0.0").fill == style.theme.sequential->at(0));
  CHECK(shape<Box>(scene, "head.0.1").fill == style.theme.sequential->at(0.5));
  CHECK(shape<Box>(scene, "head.1.2").fill == style.theme.sequential->at(1));
  CHECK(shape<Box>(scene, "head.1.0").fill == style.theme.missing);
  CHECK(find(scene, "head.0.1")->tooltip.find("sink mass 0.5") != std::string::npos);
  CHECK_THROWS_AS(head_atlas_scene(Trace{}, options, style), Error);
}

TEST_CASE("a chart's points lie where their numbers say, gaps stay gaps, and the marker sits on the line") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  LineChart chart;
  chart.y_title = "entropy, nats";
  chart.series = {{"a", rgb(0xFF0000), {0, 1, 2, 3, 4}, {0, 1, std::nan(""), 3, 4}}};
  chart.marker = Point{4, 4};
  const Scene scene = line_chart_scene(chart, style);
  const auto& first = shape<Line>(scene, "line.a");
  const auto& second = shape<Line>(scene, "line.a.1");
  REQUIRE(first.points.size() == 2);
  REQUIRE(second.points.size() == 2);
  const double step_x = first.points[1].x - first.points[0].x, step_y = first.points[1].y - first.points[0].y;
  CHECK(step_y < 0);
  CHECK(second.points[0].x == doctest::Approx(first.points[0].x + 3 * step_x));
  CHECK(second.points[1].y == doctest::Approx(first.points[0].y + 4 * step_y));
  CHECK(shape<Box>(scene, "marker").rect.center().x == doctest::Approx(second.points[1].x));
  CHECK(shape<Box>(scene, "marker").rect.center().y == doctest::Approx(second.points[1].y));
  chart.series[0].y.assign(5, std::nan(""));
  CHECK(find(line_chart_scene(chart, style), "line.a") == nullptr);
}

TEST_CASE("an axis names no value where nothing was measured, and a flat line stands on one of a unit") {
  const PangoText measure;
  const Style style{theme("light"), measure};
  LineChart chart;
  chart.grid = true;
  chart.x_low = 1;
  chart.x_high = 10;
  chart.y_low = 0;
  chart.series = {{"model", rgb(0xFF0000), {}, {}}};
  const auto texts = [&] {
    std::vector<std::string> all;
    for (const Mark& mark : line_chart_scene(chart, style).marks)
      if (const auto* text = std::get_if<Text>(&mark.shape)) all.push_back(text->text);
    return all;
  };
  CHECK(texts() == std::vector<std::string>{"no value on this text"});
  chart.y_low.reset();
  chart.series = {{"model", rgb(0xFF0000), {1, 10}, {3, 3}}};
  const std::vector<std::string> flat = texts();
  CHECK(std::ranges::count(flat, "3") == 1);
  CHECK(std::ranges::count(flat, "4") == 1);
  // Title above the highest number, not in it.
  chart.y_title = "entropy, nats";
  const Scene scene = line_chart_scene(chart, style);
  const auto& title = shape<Text>(scene, "title");
  const auto four = std::ranges::find_if(scene.marks, [](const Mark& mark) {
    const auto* text = std::get_if<Text>(&mark.shape);
    return text && text->text == "4";
  });
  REQUIRE(four != scene.marks.end());
  const Text& number = std::get<Text>(four->shape);
  CHECK(number.at.y - number.font.size >= title.at.y);
}

TEST_CASE("names at the ends of lines keep clear of one another and of the axis' title below them") {
  const PangoText measure;
  const Style style{theme("light"), measure};
  LineChart chart;
  chart.x_title = "step";
  chart.series = {{"model", rgb(0xFF0000), {0, 1, 2}, {0, 1, 0}}, {"drawn from", rgb(0x0000FF), {0, 1, 2}, {0, 1, 0}}};
  const Scene scene = line_chart_scene(chart, style);
  const auto& first = shape<Text>(scene, "label.model");
  const auto& second = shape<Text>(scene, "label.drawn from");
  CHECK(second.at.y - first.at.y >= first.font.size);
  const auto title = std::ranges::find_if(scene.marks, [](const Mark& mark) {
    const auto* text = std::get_if<Text>(&mark.shape);
    return text && text->text == "step";
  });
  REQUIRE(title != scene.marks.end());
  CHECK(std::get<Text>(title->shape).at.y - second.at.y >= 0.7 * second.font.size);  // a capital's height
  chart.series[0].y = {0, 1, 1};  // where there is room a name stands at its line
  const Scene apart = line_chart_scene(chart, style);
  const auto& line = shape<Line>(apart, "line.model");
  CHECK(std::abs(shape<Text>(apart, "label.model").at.y - line.points[2].y) < 6);
}

TEST_CASE("the parts of a score add up to it, by dimension and by rotary pair") {
  const Trace trace = factored_trace();
  const AttentionMap& map = trace.map({1, 2});
  for (const bool rotary : {false, true}) {
    const std::vector<double> parts = score_parts(map, 5, 3, rotary);
    CHECK(parts.size() == (rotary ? 2 : 4));
    // From the weights themselves: ln p(5,3) − ln p(5,1) is the difference of the two scores.
    const std::vector<double> other = score_parts(map, 5, 1, rotary);
    const double difference =
        std::accumulate(parts.begin(), parts.end(), 0.0) - std::accumulate(other.begin(), other.end(), 0.0);
    CHECK(difference == doctest::Approx(std::log(map.weight(5, 3)) - std::log(map.weight(5, 1))).epsilon(1e-5));
  }
}

TEST_CASE("a score to which distance adds is told by its three products") {
  Trace trace = factored_trace();
  const AttentionMap plain = trace.map({1, 2});
  HeadRule rule{causal_rule(), plain.scale()};
  rule.distances = std::make_shared<const DistanceVectors>(
      DistanceVectors{random_tensor({6, 4}, 8), random_tensor({6, 4}, 9), 3, 0});
  trace.maps.back() =
      AttentionMap::factored(plain.place(), plain.q(), plain.k(), plain.scale(),
                             met_rule(rule, plain.q(), plain.k(), 0), std::make_shared<HeadStats>(plain.stats()));
  double to = 0, from = 0, contents = 0;
  for (Index c = 0; c < 4; ++c) {
    const auto q = static_cast<double>(plain.q().at(5, c)), k = static_cast<double>(plain.k().at(3, c));
    contents += 0.5 * q * k;
    to += 0.5 * q * static_cast<double>(rule.distances->keys.at(5, c));  // 2 before: row 3 + 2
    from += 0.5 * k * static_cast<double>(rule.distances->queries.at(5, c));
  }
  const PangoText measure;
  const Style style{theme("light"), measure};
  const Scene scene = score_split_scene(trace, {.head = {1, 2}, .query = 5, .key = 3}, style);
  CHECK(shape<Text>(scene, "distances").text == "score " + short_number(contents + to + from, 4) + " = c→c " +
                                                    short_number(contents, 4) + " + c→p " + short_number(to, 4) +
                                                    " + p→c " + short_number(from, 4));
  CHECK(shape<Text>(scene, "sum").text.starts_with("c→c " + short_number(contents, 4) + " = 0.5 · ‖q‖ "));
  CHECK(std::ranges::any_of(scene.marks, [](const Mark& mark) {
    const auto* text = std::get_if<Text>(&mark.shape);
    return text && text->text.starts_with("c: content, p: vectors of the distance, row 5;");
  }));
  const Scene other = score_split_scene(trace, {.head = {1, 1}, .query = 5, .key = 3}, style);
  CHECK_FALSE(find(other, "distances"));
  CHECK(shape<Text>(other, "sum").text.starts_with("score "));
}

TEST_CASE("the steps end in the pattern of the trace, and masked cells are masked from the second on") {
  const Trace trace = factored_trace();
  const PangoText measure;
  const Style style{theme("light"), measure};
  const Scene scene = head_steps_scene(trace, {0, 1, 900}, style);
  const auto& scores = shape<Heatmap>(scene, "scores");
  const auto& allowed = shape<Heatmap>(scene, "allowed");
  const auto& weights = shape<Heatmap>(scene, "weights");
  CHECK_FALSE(scores.is_masked(0, 7));
  CHECK(allowed.is_masked(0, 7));
  CHECK(weights.is_masked(0, 7));
  for (Index i = 0; i < 8; ++i) {
    double sum = 0;
    for (Index j = 0; j <= i; ++j) sum += std::exp(static_cast<double>(allowed.values.at(i, j)));
    for (Index j = 0; j <= i; ++j) {
      CHECK(allowed.values.at(i, j) == scores.values.at(i, j));
      CHECK(weights.values.at(i, j) ==
            doctest::Approx(std::exp(static_cast<double>(allowed.values.at(i, j))) / sum).epsilon(1e-5));
    }
  }
  Trace imported = trace;
  imported.maps[0] = AttentionMap::dense(imported.maps[0].place(), trace.maps[0].to_dense(), nullptr,
                                         stats_of_weights(trace.maps[0].to_dense(), nullptr));
  CHECK_THROWS_AS(head_steps_scene(imported, {0, 0, 900}, style), Error);
}

TEST_CASE("names under an axis do not touch, one at the edge that is moved inwards neither") {
  const PangoText measure;
  const Style style{theme("dark"), measure};
  LineChart chart;
  chart.width = 400;
  chart.series = {{"", {}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}}};
  chart.x_ticks = {0, 1, 2, 3, 4};
  chart.x_labels = {"a long name at the edge", "next", "2", "3", "the last one, long too"};
  double end = -1e9;
  int names = 0;
  for (const Mark& mark : line_chart_scene(chart, style).marks)
    if (const auto* text = std::get_if<Text>(&mark.shape);
        text && std::ranges::find(chart.x_labels, text->text) != chart.x_labels.end()) {
      const double width = measure.width(text->text, text->font);
      const double begin = text->at.x - (text->anchor == Anchor::start    ? 0
                                         : text->anchor == Anchor::middle ? width / 2
                                                                          : width);
      CHECK(begin >= end + 6);
      CHECK(begin >= 0);
      end = begin + width;
      CHECK(end <= chart.width);
      // A screen's letters may be wider: at an edge a name is held by it.
      CHECK((begin == 0) == (text->anchor == Anchor::start));
      CHECK((end == chart.width) == (text->anchor == Anchor::end));
      CHECK((text->anchor == Anchor::start) == (text->text == chart.x_labels.front()));
      ++names;
    }
  CHECK(names >= 2);
}

}  // namespace headscope::explore_scenes_test
