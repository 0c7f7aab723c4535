#include "viz/scene/part_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "viz/color/color_norm.h"

namespace headscope {

void add_part_bars(Scene& scene, const PartBars& bars, const Rect& plot, const Style& style) {
  const Theme& theme = style.theme;
  const std::vector<double>& parts = bars.parts;
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return parts[a] > parts[b]; });
  double above = 0, below = 0;
  for (const double part : parts) above = std::max(above, part), below = std::max(below, -part);
  // The line lies where both sides fit with one scale; a little room on either side keeps it off the edge.
  const double unit = plot.h / std::max(above + below, 1e-12), middle = plot.y + unit * above,
               pitch = plot.w / static_cast<double>(std::max<std::size_t>(parts.size(), 1)),
               bar = std::max(1.0, pitch - std::min(4.0, pitch / 4));
  scene.add({Line{{{plot.x, middle}, {plot.right(), middle}}, theme.line, 1}, "", ""});
  SceneSeries numbers{"part of each " + bars.noun, {}, parts, {}};
  for (std::size_t i = 0; i < parts.size(); ++i) numbers.x.push_back(static_cast<double>(i));
  scene.series.push_back(std::move(numbers));
  const Font number = theme.small_token();
  double taken = -1e9;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double part = parts[order[i]], h = std::abs(part) * unit, x = plot.x + pitch * static_cast<double>(i);
    const std::string label = fmt::format("{}{}", bars.label, order[i]);
    scene.add({Box{{x, part >= 0 ? middle - h : middle, bar, std::max(h, 0.5)},
                   theme.diverging->at(part >= 0 ? 0.8 : 0.2),
                   {0, 0, 0, 0},
                   0,
                   std::min(2.0, bar / 3)},
               fmt::format("part.{}", order[i]),
               fmt::format("{} {}: {}", said(bars.noun), order[i], short_number(part, 4))});
    const double w = style.measure.width(label, number), at = x + bar / 2;
    if (at - w / 2 < taken + 4 || at + w / 2 > plot.right()) continue;
    taken = at + w / 2;
    scene.add({Text{{at, plot.bottom() + 16}, label, number, theme.faint, Anchor::middle, 0}, "", ""});
  }
}

}  // namespace headscope
