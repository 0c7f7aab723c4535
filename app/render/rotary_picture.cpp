#include "app/render/rotary_picture.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/nth.h"

#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/part_bars.h"
#include "viz/scene/rotary_dials.h"

namespace headscope {

namespace {

constexpr double pi = std::numbers::pi;
// More lines than this would hide one another; the strongest pairs are drawn.
constexpr std::size_t most_lines = 24;

std::vector<double> wavelengths_of(const RotaryConfig& config, int pairs) {
  std::vector<double> all;
  for (const double theta : rotary_frequencies(config, 2 * pairs)) all.push_back(2 * pi / theta);
  return all;
}

/// A hue for pair i of n: fast pairs cool, slow ones warm.
Color pair_color(std::size_t i, std::size_t n, const Theme& theme) {
  return mix(theme.query, theme.key, n > 1 ? static_cast<double>(i) / static_cast<double>(n - 1) : 0);
}

}  // namespace

std::vector<double> row_of(const Tensor& x, Index position) {
  std::vector<double> row;
  for (Index c = 0; c < x.dim(1); ++c) row.push_back(static_cast<double>(x.at(position, c)));
  return row;
}

std::vector<double> RotaryView::split(double m, double n) const {
  return rotary_scores(parts, config, m - n, scale);
}

double RotaryView::score(double m, double n) const {
  double sum = 0;
  for (const double part : split(m, n)) sum += part;
  return sum;
}

Scene rotary_dials_picture(const RotaryView& view, double width, double height, const Style& style) {
  const std::vector<double> theta = rotary_frequencies(view.config, 2 * view.pairs());
  const auto m = static_cast<double>(view.query + view.shift), n = static_cast<double>(view.key + view.shift);
  const std::vector<double> parts = view.split(m, n);
  double longest_q = 1e-12, longest_k = 1e-12, strongest = 0;
  for (const RotaryPart& part : view.parts) {
    longest_q = std::max(longest_q, part.query_norm);
    longest_k = std::max(longest_k, part.key_norm);
    strongest = std::max(strongest, part.amplitude);
  }
  DialsOptions options;
  options.width = width;
  options.height = height;
  options.largest = 190;
  for (std::size_t i = 0; i < view.parts.size(); ++i) {
    const RotaryPart& part = view.parts[i];
    Dial dial;
    dial.query_angle = part.query_angle;
    dial.key_angle = part.key_angle;
    dial.query_turn = m * theta[i];
    dial.key_turn = n * theta[i];
    dial.query_length = part.query_norm / longest_q;
    dial.key_length = part.key_norm / longest_k;
    dial.wavelength = 2 * pi / theta[i];
    dial.faint = part.amplitude < 0.02 * strongest;
    const double between = std::remainder(part.phase + (m - n) * theta[i], 2 * pi) * 180 / pi;
    dial.tooltip = say(
        "pair {}: {} of the score = {} · |q| {} · |k| {} · cos {:.0f}°; θ {} rad per token, query turned {} times, key "
        "{}",
        i, short_number(parts[i], 4), short_number(view.scale, 3), short_number(part.query_norm, 3),
        short_number(part.key_norm, 3), between, short_number(theta[i], 3), short_number(m * theta[i] / (2 * pi), 3),
        short_number(n * theta[i] / (2 * pi), 3));
    options.dials.push_back(std::move(dial));
  }
  Scene scene = rotary_dials_scene(options, style);
  scene.description = view.source;
  return scene;
}

Scene score_against_distance(const RotaryView& view, Index farthest, double width, double height, const Style& style) {
  LineChart chart;
  chart.width = width;
  chart.height = height;
  chart.y_title = said("score");
  chart.x_title = said("tokens apart, m − n");
  chart.grid = chart.pickable = true;
  const std::size_t pairs = view.parts.size();
  std::vector<ChartSeries> lines(pairs);
  ChartSeries total{"", style.theme.text, {}, {}, 2.25};
  for (std::size_t i = 0; i < pairs; ++i)
    lines[i].color = with_opacity(pair_color(i, pairs, style.theme), 0.55), lines[i].width = 1.1;
  const Index step = std::max<Index>(1, farthest / 2000);
  for (Index distance = 0; distance <= farthest; distance += step) {
    const std::vector<double> parts = view.split(static_cast<double>(distance), 0);
    double sum = 0;
    for (std::size_t i = 0; i < pairs; ++i) {
      lines[i].x.push_back(static_cast<double>(distance));
      lines[i].y.push_back(parts[i]);
      sum += parts[i];
    }
    total.x.push_back(static_cast<double>(distance));
    total.y.push_back(sum);
  }
  std::vector<std::size_t> strongest(pairs);
  for (std::size_t i = 0; i < pairs; ++i) strongest[i] = i;
  std::ranges::stable_sort(
      strongest, [&](std::size_t a, std::size_t b) { return view.parts[a].amplitude > view.parts[b].amplitude; });
  for (std::size_t i = 0; i < std::min(most_lines, pairs); ++i) chart.series.push_back(std::move(lines[strongest[i]]));
  if (!(view.config == view.own)) {
    ChartSeries own{"", with_opacity(style.theme.muted, 0.8), {}, {}, 1.25};
    RotaryView as_trained = view;
    as_trained.config = view.own;
    for (const double x : total.x) own.x.push_back(x), own.y.push_back(as_trained.score(x, 0));
    chart.series.push_back(std::move(own));
  }
  chart.series.push_back(std::move(total));
  const auto distance = static_cast<double>(view.query - view.key);
  chart.marker = Point{distance, view.score(distance, 0)};
  if (view.context > 0 && farthest > view.context)
    chart.marks.push_back({static_cast<double>(view.context), said("trained context")});
  Scene scene = line_chart_scene(chart, style);
  scene.title = said("Score against distance");
  scene.description = view.source;
  return scene;
}

Scene why_this_score(const RotaryView& view, double width, double height, const Style& style) {
  Scene scene;
  scene.background = style.theme.background;
  scene.title = said("Why this score");
  scene.description = view.source;
  scene.width = width;
  scene.height = height;
  add_part_bars(scene,
                {view.split(static_cast<double>(view.query), static_cast<double>(view.key)), "p", to_say("pair")},
                {0, 6, width, height - 30}, style);
  return scene;
}

Scene rotary_wavelengths(const RotaryView& view, double width, double height, const Style& style) {
  Wavelengths options;
  options.own = wavelengths_of(view.own, view.pairs());
  if (!(view.config == view.own)) options.changed = wavelengths_of(view.config, view.pairs());
  options.context = view.context;
  options.width = width;
  options.height = height;
  return wavelengths_scene(options, style);
}

MatrixMap score_by_positions(const RotaryView& view, Index count) {
  std::vector<double> by_distance;  // from 1 − count on
  for (Index d = 1 - count; d < count; ++d)
    by_distance.push_back(view.causal && d < 0 ? 0
                                               : view.score(static_cast<double>(std::max<Index>(d, 0)),
                                                            static_cast<double>(std::max<Index>(-d, 0))));
  MatrixMap matrix;
  matrix.values = Tensor::zeros({count, count});
  matrix.masked.assign(static_cast<std::size_t>(count * count), 1);
  for (Index m = 0; m < count; ++m)
    for (Index n = 0; n < (view.causal ? m + 1 : count); ++n) {
      matrix.values.ref(m, n) = static_cast<float>(nth(by_distance, m - n + count - 1));
      nth(matrix.masked, m * count + n) = 0;
    }
  matrix.bar = said("score of this query and key");
  matrix.columns = said("key at n");
  matrix.rows = said("query at m");
  matrix.numbers = false;
  matrix.sequential = true;
  matrix.provenance = view.source;
  if (view.query + view.shift < count) matrix.marked = Cell{view.query + view.shift, view.key + view.shift};
  return matrix;
}

MatrixMap head_scores(const Tensor& q, const Tensor& k, const RotaryConfig& config, RotaryLayout layout, double scale,
                      bool causal) {
  const Index count = q.dim(0);
  const std::vector<double> theta = rotary_frequencies(config, static_cast<int>(q.dim(1)));
  const double magnitude = rotary_magnitude(config);
  std::vector<std::vector<double>> queries, keys;
  for (Index p = 0; p < count; ++p) {
    queries.push_back(rotated(row_of(q, p), static_cast<double>(p), theta, layout, magnitude));
    keys.push_back(rotated(row_of(k, p), static_cast<double>(p), theta, layout, magnitude));
  }
  MatrixMap matrix;
  matrix.values = Tensor::zeros({count, count});
  matrix.masked.assign(static_cast<std::size_t>(count * count), 1);
  for (Index m = 0; m < count; ++m)
    for (Index n = 0; n < (causal ? m + 1 : count); ++n) {
      double sum = 0;
      for (std::size_t c = 0; c < queries[0].size(); ++c) sum += nth(queries, m)[c] * nth(keys, n)[c];
      matrix.values.ref(m, n) = static_cast<float>(scale * sum);
      nth(matrix.masked, m * count + n) = 0;
    }
  matrix.sequential = true;
  matrix.bar = said("score, scale · ⟨R(m) q, R(n) k⟩");
  matrix.columns = said("key n");
  matrix.rows = said("query m");
  return matrix;
}

}  // namespace headscope
