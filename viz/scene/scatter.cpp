#include "viz/scene/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/annotations.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double radius = 4.5;

struct Axis {
  double low = 0, high = 1;
  double unit(double v) const { return (v - low) / (high - low); }
};

Axis axis_of(const std::vector<ScatterPoint>& points, double ScatterPoint::*value, double ScatterPoint::*spread,
             std::optional<double> low, std::optional<double> high) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const ScatterPoint& point : points) {
    if (!std::isfinite(point.*value)) continue;
    const double reach = std::isfinite(point.*spread) ? point.*spread : 0;
    least = std::min(least, point.*value - reach), most = std::max(most, point.*value + reach);
  }
  if (least > most) least = 0, most = 1;
  // Out to round numbers, and not below 0 when no value is.
  const double room = std::max((most - least) * 0.04, 1e-6), raw = (most - least + 2 * room) / 8;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double step = raw <= power ? power : raw <= 2 * power ? 2 * power : raw <= 5 * power ? 5 * power : 10 * power;
  const double floor = std::floor((least - room) / step) * step;
  Axis axis{low.value_or(least >= 0 ? std::max(floor, 0.0) : floor),
            high.value_or(std::ceil((most + room) / step) * step)};
  if (!(axis.high > axis.low)) axis.high = axis.low + 1;
  return axis;
}

/// Short dashes between two points that lie level or upright.
void add_dashes(Scene& scene, Point from, Point to, Color color) {
  const double length = std::max(std::abs(to.x - from.x), std::abs(to.y - from.y));
  constexpr double dash = 4, gap = 4;
  for (double at = 0; at < length; at += dash + gap) {
    const auto along = [&](double t) {
      t = std::min(t / length, 1.0);
      return Point{from.x + (to.x - from.x) * t, from.y + (to.y - from.y) * t};
    };
    scene.add({Line{{along(at), along(at + dash)}, color, 1}, "", ""});
  }
}

double add_legend(Scene& scene, const ScatterOptions& options, double x, double y, double width, const Style& style) {
  auto legend = options.legend;
  if (!options.hollow_title.empty()) legend.emplace_back(options.hollow_title, style.theme.muted);
  const Font font = style.theme.caption();
  const double line = std::round(16 * style.theme.text_scale), left = x;
  for (const auto& [title, color] : legend) {
    const double room = 13 + style.measure.width(title, font);
    if (x > left && x + room > left + width) x = left, y += line;
    const bool ring = !options.hollow_title.empty() && title == options.hollow_title;
    scene.add({ring ? Box{{x + 0.75, y + line / 2 - 3.25, 6.5, 6.5}, {0, 0, 0, 0}, color, 1.5, 3.25}
                    : Box{{x, y + line / 2 - 4, 8, 8}, color, {0, 0, 0, 0}, 0, 4},
               "", ""});
    scene.add(
        {Text{{x + 13, y + line / 2 + half_capital(font)}, title, font, style.theme.muted, Anchor::start, 0}, "", ""});
    x += room + 14;
  }
  return legend.empty() ? y : y + line;
}

}  // namespace

Scene scatter_scene(const std::vector<ScatterPoint>& points, const ScatterOptions& options, const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.caption(), number = theme.small_token();
  Scene scene;
  scene.background = theme.background;
  scene.width = options.width;
  scene.height = options.height;
  scene.title = say("{} against {}", options.y_title, options.x_title);
  SceneSeries values{scene.title, {}, {}, {}};
  for (const ScatterPoint& point : points) {
    values.x.push_back(point.x);
    values.y.push_back(point.y);
    values.labels.push_back(point.label);
  }
  scene.series.push_back(std::move(values));
  const Axis x = axis_of(points, &ScatterPoint::x, &ScatterPoint::x_spread, options.x_low, options.x_high),
             y = axis_of(points, &ScatterPoint::y, &ScatterPoint::y_spread, options.y_low, options.y_high);
  const double line = std::round(15 * theme.text_scale);
  const auto y_ticks =
      ticks(ColorNorm{Scale::linear, y.low, y.high}, std::max(2, static_cast<int>(options.height / 70)));
  double left = 0;
  for (const Tick& tick : y_ticks) left = std::max(left, style.measure.width(tick.text, number));
  left = std::ceil(left) + 10;
  const double top = add_legend(scene, options, left, 0, options.width - left, style) + 4 + line;
  const double right = options.chance ? style.measure.width(said("chance"), font) + 6 : 10;
  const Rect plot{left, top, options.width - left - right, options.height - top - 2 * line - 6};
  const auto place = [&](double px, double py) {
    return Point{plot.x + plot.w * x.unit(px), plot.y + plot.h * (1 - y.unit(py))};
  };
  scene.add({Box{plot, {0, 0, 0, 0}, theme.line, 1, 0}, "plot", ""});
  scene.add({Text{{plot.x, plot.y - 6}, options.y_title, font, theme.muted, Anchor::start, 0}, "title.y", ""});
  scene.add({Text{{plot.right(), plot.bottom() + 2 * line}, options.x_title, font, theme.muted, Anchor::end, 0},
             "title.x", ""});
  const Color thin = with_opacity(theme.line, 0.55);
  for (const Tick& tick : y_ticks) {
    const double at = place(x.low, tick.value).y;
    scene.add({Line{{{plot.x, at}, {plot.right(), at}}, thin, 1}, "", ""});
    scene.add({Text{{plot.x - 6, at + half_capital(number)}, tick.text, number, theme.faint, Anchor::end, 0}, "", ""});
  }
  double taken = -1e9;
  for (const Tick& tick :
       ticks(ColorNorm{Scale::linear, x.low, x.high}, std::max(2, static_cast<int>(options.width / 90)))) {
    const double at = place(tick.value, y.low).x, wide = style.measure.width(tick.text, number);
    scene.add({Line{{{at, plot.y}, {at, plot.bottom()}}, thin, 1}, "", ""});
    if (at - wide / 2 < taken + 6) continue;
    taken = at + wide / 2;
    scene.add({Text{{at, plot.bottom() + line}, tick.text, number, theme.faint, Anchor::middle, 0}, "", ""});
  }
  if (options.chance) {
    const Color color = with_opacity(theme.muted, 0.8);
    const Point at = place(options.chance->x, options.chance->y);
    const bool across = at.y > plot.y && at.y<plot.bottom(), down = at.x> plot.x && at.x < plot.right();
    if (across) add_dashes(scene, {plot.x, at.y}, {plot.right(), at.y}, color);
    if (down) add_dashes(scene, {at.x, plot.y}, {at.x, plot.bottom()}, color);
    const double end = plot.right() - 5 - style.measure.width(said("chance"), font);
    if (across)  // outside, where no point can lie on it
      scene.add(
          {Text{{plot.right() + 4, at.y + half_capital(font)}, said("chance"), font, theme.muted, Anchor::start, 0}, "",
           ""});
    else if (down)
      scene.add({Text{{std::min(at.x + 4, end), plot.y + line}, said("chance"), font, theme.muted, Anchor::start, 0},
                 "", ""});
  }

  std::vector<const ScatterPoint*> drawn;
  for (const ScatterPoint& point : points)
    if (std::isfinite(point.x) && std::isfinite(point.y)) drawn.push_back(&point);
  for (const ScatterPoint* point : drawn) {  // crosses below all points
    const auto span = [](double at, double spread, double low, double high) {
      return std::pair(std::clamp(at - spread, low, high), std::clamp(at + spread, low, high));
    };
    const Color color = with_opacity(point->color, 0.35);
    if (point->x_spread > 0) {
      const auto [from, to] = span(point->x, point->x_spread, x.low, x.high);
      scene.add({Line{{place(from, point->y), place(to, point->y)}, color, 1.25}, "", ""});
    }
    if (point->y_spread > 0) {
      const auto [from, to] = span(point->y, point->y_spread, y.low, y.high);
      scene.add({Line{{place(point->x, from), place(point->x, to)}, color, 1.25}, "", ""});
    }
  }
  std::vector<Rect> written;
  for (const bool named : {true, false})
    for (const ScatterPoint* point : drawn) {
      if (point->named != named) continue;
      const Point at = place(point->x, point->y);
      const double wide = style.measure.width(point->label, number);
      Rect label{at.x + radius + 2, at.y - 13, wide, 10};  // clear of the cross
      if (label.right() > plot.right()) label.x = at.x - radius - 2 - wide;
      if (label.y < plot.y) label.y = at.y + 3;
      const bool crowded = std::ranges::any_of(written, [&](const Rect& other) {
        return label.x < other.right() + 2 && other.x < label.right() + 2 && label.y < other.bottom() &&
               other.y < label.bottom();
      });
      if (!named && crowded) continue;
      written.push_back(label);
      scene.add(
          {Text{{label.x, label.y + 5 + half_capital(number)}, point->label, number, theme.muted, Anchor::start, 0}, "",
           ""});
    }
  for (const ScatterPoint* point : drawn) {
    const Point at = place(point->x, point->y);
    const Rect place_of{at.x - radius, at.y - radius, 2 * radius, 2 * radius};
    scene.add({point->hollow ? Box{place_of, theme.background, point->color, 1.75, radius}
                             : Box{place_of, point->color, theme.background, 1, radius},
               fmt::format("head.{}.{}", point->head.layer, point->head.head), point->tooltip, point->head});
  }
  if (drawn.empty())
    scene.add({Text{{plot.x + plot.w / 2, plot.y + plot.h / 2},
                    said("no head has both values here"),
                    font,
                    theme.faint,
                    Anchor::middle,
                    0},
               "", ""});
  if (drawn.size() < points.size())
    scene.add({Text{{plot.x, plot.bottom() + 2 * line},
                    say("{} without a value", points.size() - drawn.size()),
                    font,
                    theme.faint,
                    Anchor::start,
                    0},
               "missing", ""});
  return scene;
}

}  // namespace headscope
