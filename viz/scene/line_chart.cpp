#include "viz/scene/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "viz/color/norm.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double v) {
    if (!std::isfinite(v)) return;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  bool empty() const { return low > high; }
};

}  // namespace

Scene line_chart_scene(const LineChart& chart, const Look& look) {
  const Theme& theme = look.theme;
  const Font font = theme.caption(), number = theme.small_token();
  Scene scene;
  scene.background = theme.background;
  scene.width = chart.width;
  scene.height = chart.height;
  scene.title = chart.y_title;

  Range xs, ys;
  for (const ChartSeries& line : chart.series)
    for (std::size_t i = 0; i < line.y.size(); ++i)
      if (std::isfinite(line.y[i])) xs.add(line.x[i]), ys.add(line.y[i]);
  if (xs.empty()) {
    scene.add({Text{{chart.width / 2, chart.height / 2}, "no value on this text", font, theme.faint, Anchor::middle, 0},
               "", ""});
    return scene;
  }
  const double low = chart.y_low.value_or(ys.low), high = std::max(chart.y_high.value_or(ys.high), low + 1e-9);
  const auto across = [&](double x) { return chart.log_x ? std::log(std::max(x, 1e-300)) : x; };
  const double x_low = across(xs.low), x_high = std::max(across(xs.high), x_low + 1e-9);

  const double tick_width =
      std::max(look.measure.width(short_number(low, 2), number), look.measure.width(short_number(high, 2), number));
  double title_width = 0;
  for (const ChartSeries& line : chart.series)
    title_width = std::max(title_width, look.measure.width(line.title, font));
  const double line_height = std::round(14 * theme.text_scale);
  const Rect plot{std::ceil(tick_width) + 8, line_height + 4,
                  chart.width - std::ceil(tick_width) - 14 - (title_width > 0 ? title_width + 8 : 0),
                  chart.height - 2 * line_height - 8};
  const auto place = [&](double x, double y) {
    return Point{plot.x + plot.w * (across(x) - x_low) / (x_high - x_low),
                 plot.y + plot.h * (1 - (std::clamp(y, low, high) - low) / (high - low))};
  };

  scene.add({Text{{0, line_height - 3}, chart.y_title, font, theme.muted, Anchor::start, 0}, "title", ""});
  for (const double y : {low, high}) {
    const Point at = place(xs.low, y);
    scene.add({Line{{{plot.x, at.y}, {plot.right(), at.y}}, with_opacity(theme.line, 0.8), 1}, "", ""});
    scene.add({Text{{plot.x - 6, at.y + half_capital(number)}, short_number(y, 2), number, theme.faint, Anchor::end, 0},
               "", ""});
  }
  std::vector<double> x_ticks = chart.x_ticks;
  if (x_ticks.empty()) x_ticks = {xs.low, xs.high};
  double taken = -1e9;
  for (const double x : x_ticks) {
    if (x < xs.low || x > xs.high) continue;
    const std::string text = short_number(x, 3);
    const double w = look.measure.width(text, number), at = place(x, low).x;
    if (at - w / 2 < taken + 6) continue;
    taken = at + w / 2;
    scene.add({Text{{at, plot.bottom() + line_height - 1}, text, number, theme.faint, Anchor::middle, 0}, "", ""});
  }
  // Titles at the lines' ends, moved apart where they would touch.
  std::vector<std::pair<double, const ChartSeries*>> ends;
  for (const ChartSeries& line : chart.series) {
    Line drawn{{}, line.color, 1.75};
    double end = 0;
    int pieces = 0;
    const auto flush = [&] {
      if (drawn.points.size() > 1)
        scene.add({drawn, "line." + line.title + (pieces ? "." + std::to_string(pieces) : ""), ""}), ++pieces;
      drawn.points.clear();
    };
    for (std::size_t i = 0; i < line.y.size(); ++i) {
      if (!std::isfinite(line.y[i])) {
        flush();
        continue;
      }
      drawn.points.push_back(place(line.x[i], line.y[i]));
      end = drawn.points.back().y;
    }
    flush();
    if (!line.title.empty()) ends.emplace_back(end, &line);
  }
  std::ranges::stable_sort(ends, {}, &std::pair<double, const ChartSeries*>::first);
  double lowest = -1e9;
  for (auto& [y, line] : ends) {
    y = std::max(y, lowest + line_height - 2);
    lowest = y;
  }
  const double overshoot = ends.empty() ? 0 : std::max(0.0, ends.back().first - (chart.height - line_height));
  for (const auto& [y, line] : ends)
    scene.add(
        {Text{{plot.right() + 6, y - overshoot + half_capital(font)}, line->title, font, line->color, Anchor::start, 0},
         "label." + line->title, ""});
  if (chart.marker) {
    const Point at = place(chart.marker->x, chart.marker->y);
    scene.add({Box{{at.x - 4, at.y - 4, 8, 8}, theme.accent, theme.background, 1.5, 4}, "marker", ""});
  }
  return scene;
}

}  // namespace headscope
