#include "viz/scene/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <ranges>

#include "core/base/words.h"
#include "viz/color/color_norm.h"
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

/// Round values in [low, high], about `count`; the ends only where they are round themselves.
std::vector<double> round_ticks(double low, double high, int count) {
  const double span = high - low, raw = span / std::max(count, 1), power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= raw * (1 - 1e-9)) step = factor * power;
  std::vector<double> values;
  for (double v = std::ceil(low / step - 1e-9) * step; v <= high + 1e-9 * span; v += step)
    values.push_back(std::abs(v) < 1e-9 * span ? 0 : v);
  return values;
}

/// Straight pieces of `line` with gaps between them.
void add_dashes(Scene& scene, const Line& line) {
  constexpr double dash = 5, space = 4;
  double left = dash;
  bool on = true;
  for (std::size_t i = 1; i < line.points.size(); ++i) {
    const Point a = line.points[i - 1], b = line.points[i];
    const double length = std::hypot(b.x - a.x, b.y - a.y);
    for (double at = 0; at < length;) {
      const double next = std::min(at + left, length);
      const auto point = [&](double t) {
        return Point{a.x + (b.x - a.x) * t / length, a.y + (b.y - a.y) * t / length};
      };
      if (on) scene.add({Line{{point(at), point(next)}, line.color, line.width}, "", ""});
      left -= next - at;
      at = next;
      if (left <= 1e-9) on = !on, left = on ? dash : space;
    }
  }
}

/// Half the room between neighbours wide, from the ground of `plot` up to the values.
void add_bars(Scene& scene, const ChartSeries& line, const LineChart& chart, const Rect& plot,
              const std::function<Point(double, double)>& place, const Style& style) {
  const auto count = static_cast<double>(std::max<std::size_t>(line.x.size(), 2));
  const double wide = std::clamp(0.5 * plot.w / (count - 1), 2.0, 34.0);
  for (std::size_t i = 0; i < line.y.size(); ++i) {
    if (!std::isfinite(line.y[i])) continue;
    const Point at = place(line.x[i], line.y[i]);
    const double left = std::max(at.x - wide / 2, plot.x), right = std::min(at.x + wide / 2, plot.right() + 4);
    const bool chosen = chart.marker && std::abs(line.x[i] - chart.marker->x) < 1e-9;
    scene.add({Box{{left, at.y, right - left, std::max(plot.bottom() - at.y, 1.0)},
                   chosen ? style.theme.accent : with_opacity(line.color, 0.55),
                   {0, 0, 0, 0},
                   0,
                   2},
               fmt::format("bar.{}.{}", line.title, i),
               fmt::format("{} {}: {} {}", chart.x_title, short_number(line.x[i], 6), short_number(line.y[i], 4),
                           chart.y_title)});
    if (!chosen) continue;
    const std::string text = short_number(line.y[i], 4);
    const Font number = style.theme.small_token();
    const double half = style.measure.width(text, number) / 2;
    scene.add(
        {Text{{std::clamp((left + right) / 2, plot.x + half, std::max(plot.right() - half, plot.x + half)), at.y - 4},
              text,
              number,
              style.theme.text,
              Anchor::middle,
              0},
         fmt::format("number.{}", line.title), ""});
  }
}

/// Between the least and the most, in strips of two pixels.
template <class Place>
void add_band(Scene& scene, const ChartSeries& line, Place place) {
  constexpr double strip = 2;
  if (line.least.size() != line.x.size() || line.most.size() != line.x.size()) return;
  for (std::size_t i = 1; i < line.x.size(); ++i) {
    const Point from_low = place(line.x[i - 1], line.least[i - 1]), to_low = place(line.x[i], line.least[i]),
                from_high = place(line.x[i - 1], line.most[i - 1]), to_high = place(line.x[i], line.most[i]);
    for (double x = from_low.x; x < to_low.x; x += strip) {
      const double wide = std::min(strip, to_low.x - x), t = (x + wide / 2 - from_low.x) / (to_low.x - from_low.x);
      const double below = from_low.y + t * (to_low.y - from_low.y),
                   above = from_high.y + t * (to_high.y - from_high.y);
      scene.add(
          {Box{{x, above, wide, std::max(below - above, 0.0)}, with_opacity(line.color, 0.18), {0, 0, 0, 0}, 0, 0}, "",
           ""});
    }
  }
}

}  // namespace

Scene line_chart_scene(const LineChart& chart, const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.caption(), number = theme.small_token();
  Scene scene;
  scene.background = theme.background;
  scene.width = chart.width;
  scene.height = chart.height;
  scene.title = chart.y_title;

  Range xs, ys;
  for (const ChartSeries& line : chart.series) {
    for (std::size_t i = 0; i < line.y.size(); ++i)
      if (std::isfinite(line.y[i]) && (!chart.log_y || line.y[i] > 0)) xs.add(line.x[i]), ys.add(line.y[i]);
    for (const auto* edge : {&line.least, &line.most})
      for (const double y : *edge)
        if (!chart.log_y || y > 0) ys.add(y);
  }
  if (xs.empty()) {  // whatever range was asked for: an axis would name values that nothing has
    scene.add(
        {Text{{chart.width / 2, chart.height / 2}, said("no value on this text"), font, theme.faint, Anchor::middle, 0},
         "", ""});
    return scene;
  }
  if (chart.x_low) xs.low = *chart.x_low;
  if (chart.x_high) xs.high = *chart.x_high;
  // On a logarithmic axis both are logarithms. A flat line lies on the ground of an axis of one unit.
  const auto up = [&](double y) { return chart.log_y ? std::log10(std::max(y, 1e-300)) : y; };
  const double low = up(chart.y_low.value_or(ys.low)), most = up(chart.y_high.value_or(ys.high)),
               high = most > low ? most : low + 1;
  const auto across = [&](double x) { return chart.log_x ? std::log(std::max(x, 1e-300)) : x; };
  const double x_low = across(xs.low), x_high = std::max(across(xs.high), x_low + 1e-9);

  // Where a value is written: its place in the axis' own measure, and its words.
  std::vector<std::pair<double, std::string>> levels;
  if (chart.log_y)
    for (double decade = std::ceil(low - 1e-9); decade <= high + 1e-9; ++decade)
      levels.emplace_back(decade, power_of_ten(static_cast<int>(decade)));
  else
    for (const double y :
         chart.grid ? round_ticks(low, high, static_cast<int>(chart.height / 30)) : std::vector<double>{low, high})
      levels.emplace_back(y, short_number(y, chart.grid ? 4 : 2));
  double tick_width = 0;
  for (const auto& [level, text] : levels) tick_width = std::max(tick_width, style.measure.width(text, number));
  double title_width = 0;
  for (const ChartSeries& line : chart.series)
    title_width = std::max(title_width, style.measure.width(line.title, font));
  const double line_height = std::round(14 * theme.text_scale);
  std::vector<double> x_ticks = chart.x_ticks;
  // The number at the axis' upper end stands half above it, clear of the title.
  const double top = std::ceil(number.size / 2) + (chart.y_title.empty() ? 0 : line_height + 1) +
                     (chart.bars && chart.marker ? line_height - 4 : 0);  // and that of the highest bar above it
  Rect plot{std::ceil(tick_width) + 8, top,
            chart.width - std::ceil(tick_width) - 14 - (title_width > 0 ? title_width + 8 : 0),
            chart.height - top - line_height - 4};
  if (x_ticks.empty() && chart.grid && !chart.log_x)
    x_ticks = round_ticks(xs.low, x_high, static_cast<int>(plot.w / 80));
  if (x_ticks.empty()) x_ticks = {xs.low, xs.high};
  const auto x_text = [&](std::size_t i) {
    return i < chart.x_labels.size() ? chart.x_labels[i] : short_number(x_ticks[i], chart.grid || chart.log_x ? 6 : 3);
  };
  // The title of the axis stands at the end of the ticks' line; where chosen ticks are written there, below it.
  const double x_end = chart.x_title.empty() ? 1e9 : chart.width - style.measure.width(chart.x_title, font) - 8;
  const double last_tick = plot.x + plot.w * (across(x_ticks.back()) - x_low) / (x_high - x_low);
  const bool title_below = !chart.x_ticks.empty() && x_ticks.back() <= xs.high &&
                           last_tick + style.measure.width(x_text(x_ticks.size() - 1), number) / 2 > x_end &&
                           plot.h > 4 * line_height;
  if (title_below) plot.h -= line_height;
  const auto place = [&](double x, double y) {
    return Point{plot.x + plot.w * (across(x) - x_low) / (x_high - x_low),
                 plot.y + plot.h * (1 - (std::clamp(up(y), low, high) - low) / (high - low))};
  };

  Mark& ground = scene.add({Box{plot, {0, 0, 0, 0}, {0, 0, 0, 0}, 0, 0}, "plot", ""});  // where the data lies
  if (chart.pickable) {
    PlotArea area{xs.low, xs.high > xs.low ? xs.high : xs.low + 1e-9, chart.log_x};
    for (const ChartSeries& line : chart.series)
      if (!line.quiet && line.x.size() > area.stops.size()) area.stops = line.x;
    ground.meaning = std::move(area);
  }
  scene.add({Text{{0, line_height - 3},
                  elided(chart.y_title, font, chart.width, style.measure),
                  font,
                  theme.muted,
                  Anchor::start,
                  0},
             "title", ""});
  double y_taken = 1e9;
  for (const auto& [level, text] : levels) {
    const double y = plot.y + plot.h * (1 - (level - low) / (high - low));
    if (y_taken - y < number.size + 2) continue;
    y_taken = y;
    scene.add({Line{{{plot.x, y}, {plot.right(), y}}, with_opacity(theme.line, 0.8), 1}, "", ""});
    scene.add({Text{{plot.x - 6, y + half_capital(number)}, text, number, theme.faint, Anchor::end, 0}, "", ""});
  }
  if (!chart.x_title.empty())
    scene.add({Text{{chart.width, plot.bottom() + (title_below ? 2 : 1) * line_height - 1},
                    chart.x_title,
                    font,
                    theme.faint,
                    Anchor::end,
                    0},
               "", ""});
  double taken = -1e9;
  bool ticks_reach_out = false;  // below what stands at the lines' ends
  for (std::size_t i = 0; i < x_ticks.size(); ++i) {
    const double x = x_ticks[i];
    if (x < xs.low || x > xs.high) continue;
    const std::string text = x_text(i);
    const double w = style.measure.width(text, number);
    // Whole, within the chart: one moved inwards is held at its edge, also where a screen's letters are wider.
    const double at = std::max(std::min(place(x, low).x, chart.width - w / 2), w / 2);
    if (at - w / 2 < taken + 6 || (!title_below && at + w / 2 > x_end)) continue;
    taken = at + w / 2;
    ticks_reach_out |= taken > plot.right() + 2;
    const Anchor held = at <= w / 2 ? Anchor::start : at >= chart.width - w / 2 ? Anchor::end : Anchor::middle;
    const double from = held == Anchor::start ? 0 : held == Anchor::end ? chart.width : at;
    scene.add({Text{{from, plot.bottom() + line_height - 1}, text, number, theme.faint, held, 0}, "", ""});
  }
  for (const ChartMark& mark : chart.marks) {
    if (!(mark.x >= xs.low && mark.x <= xs.high)) continue;
    const double x = place(mark.x, low).x;
    scene.add({Line{{{x, plot.y}, {x, plot.bottom()}}, with_opacity(theme.muted, 0.7), 1}, "mark." + mark.text, ""});
    const bool left = x + style.measure.width(mark.text, font) + 6 > plot.right();
    scene.add({Text{{left ? x - 4 : x + 4, plot.y + font.size},
                    mark.text,
                    font,
                    theme.muted,
                    left ? Anchor::end : Anchor::start,
                    0},
               "", ""});
  }
  for (const ChartSeries& line : chart.series) add_band(scene, line, place);
  // Titles at the lines' ends, moved apart where they would touch.
  std::vector<std::pair<double, const ChartSeries*>> ends;
  for (const ChartSeries& line : chart.series) {
    Line drawn{{}, line.color, line.width};
    double end = 0;
    int pieces = 0;
    const auto flush = [&] {
      if (line.dashed)
        add_dashes(scene, drawn);
      else if (!line.dots && drawn.points.size() > 1)
        scene.add({drawn, "line." + line.title + (pieces ? "." + std::to_string(pieces) : ""), ""}), ++pieces;
      drawn.points.clear();
    };
    if (chart.bars && !line.dashed) {
      add_bars(scene, line, chart, plot, place, style);
      scene.series.push_back({line.title, line.x, line.y, {}});
      if (!line.title.empty() && !line.y.empty()) ends.emplace_back(place(line.x.back(), line.y.back()).y, &line);
      continue;
    }
    for (std::size_t i = 0; i < line.y.size(); ++i) {
      if (!std::isfinite(line.y[i]) || (chart.log_y && line.y[i] <= 0)) {
        flush();
        continue;
      }
      drawn.points.push_back(place(line.x[i], line.y[i]));
      end = drawn.points.back().y;
    }
    flush();
    if ((chart.points || line.dots) && !line.dashed)
      for (std::size_t i = 0; i < line.y.size(); ++i) {
        if (!std::isfinite(line.y[i])) continue;
        const Point at = place(line.x[i], line.y[i]);
        scene.add({Box{{at.x - 2.5, at.y - 2.5, 5, 5}, line.color, {0, 0, 0, 0}, 0, 2.5},
                   fmt::format("point.{}.{}", line.title, i),
                   fmt::format("{} {}: {} {}", chart.x_title, short_number(line.x[i], 6), short_number(line.y[i], 3),
                               chart.y_title)});
      }
    if (!line.title.empty()) ends.emplace_back(end, &line);
    scene.series.push_back({line.title, line.x, line.y, {}});
    if (!line.least.empty()) scene.series.push_back({line.title + ", least", line.x, line.least, {}});
    if (!line.most.empty()) scene.series.push_back({line.title + ", most", line.x, line.most, {}});
  }
  std::ranges::stable_sort(ends, {}, &std::pair<double, const ChartSeries*>::first);
  double lowest = -1e9;
  for (auto& [y, line] : ends) {
    y = std::max(y, lowest + line_height - 2);
    lowest = y;
  }
  // They keep clear of the axis' title and of its last tick, which stand below them.
  const bool free_below = chart.x_title.empty() && !ticks_reach_out;
  double highest = (free_below ? chart.height - line_height : plot.bottom() - 3) + line_height - 2;
  for (auto& [y, line] : std::views::reverse(ends)) {
    y = std::min(y, highest - line_height + 2);
    highest = y;
  }
  for (const auto& [y, line] : ends)
    scene.add({Text{{plot.right() + 6, y + half_capital(font)}, line->title, font, line->color, Anchor::start, 0},
               "label." + line->title, ""});
  if (chart.marker && !chart.bars) {
    const Point at = place(chart.marker->x, chart.marker->y);
    scene.add({Box{{at.x - 4, at.y - 4, 8, 8}, theme.accent, theme.background, 1.5, 4}, "marker", ""});
  }
  return scene;
}

}  // namespace headscope
