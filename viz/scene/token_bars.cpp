#include "viz/scene/token_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/nth.h"

#include "viz/color/color_norm.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
constexpr Color touchable{128, 128, 128, 1};  // not seen, but found by the pointer, which looks for what is filled

/// Words at the right end of their levels, moved apart where they would touch.
void add_level_words(Scene& scene, std::vector<std::pair<double, std::string>> words, double x, double lowest,
                     const Style& style) {
  const Font font = style.theme.caption();
  const double line = std::round(13 * style.theme.text_scale);
  std::ranges::sort(words);
  for (std::size_t i = 1; i < words.size(); ++i) words[i].first = std::max(words[i].first, words[i - 1].first + line);
  double limit = lowest;
  for (std::size_t i = words.size(); i-- > 0; limit = words[i].first - line)
    words[i].first = std::min(words[i].first, limit);
  for (const auto& [y, text] : words)
    scene.add({Text{{x, y + half_capital(font)}, text, font, style.theme.muted, Anchor::start, 0}, "", ""});
}
}  // namespace

Scene token_bars_scene(const TokenBars& bars, const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.caption(), number = theme.small_token();
  const auto count = static_cast<Index>(bars.values.size());
  Scene scene;
  scene.background = theme.background;
  scene.title = bars.unit;
  double highest = 0, words = style.measure.width(bars.line_title, font);
  for (const double v : bars.values)
    if (std::isfinite(v)) highest = std::max(highest, v);
  for (const TokenBars::Level& level : bars.levels) {
    highest = std::max(highest, level.value);
    words = std::max(words, style.measure.width(level.text, font));
  }
  if (highest <= 0) highest = 1;
  const ColorNorm norm{Scale::linear, 0, 1.04 * highest};

  const double line = std::round(15 * theme.text_scale), left = 40 * theme.text_scale,
               right = words > 0 ? std::ceil(words) + 12 : 4;
  // Leaning labels may need more room left of the bars than the numbers of the axis: then the bars get narrower.
  double start = left, cell = 0;
  AxisPlan axis;
  for (int round = 0; round < 2; ++round) {
    cell = std::clamp((bars.width - start - right) / static_cast<double>(std::max<Index>(count, 1)), 4.0, 64.0);
    axis = plan_bottom_axis({*bars.tokens, bars.first, count, 1, cell, bars.marked}, style);
    start = std::ceil(std::max(start, axis.overhang));
  }
  const Rect plot{start, line + 6, cell * static_cast<double>(count),
                  std::max(40.0, bars.height - line - 6 - axis.depth - 6)};
  scene.width = std::max(bars.width, plot.right() + right);
  scene.height = std::ceil(plot.bottom() + axis.depth + 6);
  const auto level_of = [&](double value) { return plot.bottom() - plot.h * norm(value); };

  scene.add({Text{{0, line - 3}, bars.unit, font, theme.muted, Anchor::start, 0}, "title", ""});
  const std::vector<Tick> all = ticks({Scale::linear, 0, highest}, static_cast<int>(plot.h / 40) + 1);
  for (const Tick& tick : all) {
    if (tick.unit == 1 && all.size() > 2) continue;  // the largest number, seldom a round one
    const double y = std::round(level_of(tick.value)) - 0.5;
    scene.add({Line{{{plot.x, y}, {plot.right(), y}}, theme.line, 1}, "", ""});
    scene.add(
        {Text{{plot.x - 6, y + half_capital(number)}, short_number(tick.value, 3), number, theme.faint, Anchor::end, 0},
         "", ""});
  }
  const double space = cell >= 12 ? std::round(cell * 0.18) : cell >= 6 ? 1 : 0;
  for (Index i = 0; i < count; ++i) {
    const double value = nth(bars.values, i);
    if (!std::isfinite(value)) continue;
    const bool marked = bars.marked == bars.first + i;
    const double y = level_of(value), x = plot.x + cell * static_cast<double>(i);
    const std::string tip = static_cast<std::size_t>(i) < bars.tooltips.size() ? nth(bars.tooltips, i) : "";
    scene.add({Box{{x, plot.y, cell, plot.h}, touchable, {0, 0, 0, 0}, 0, 0}, fmt::format("place.{}", bars.first + i),
               tip, TokenAt{bars.first + i}});
    const Color fill = marked ? theme.accent : mix(theme.accent, theme.background, 0.42);
    scene.add({Box{{x + space / 2, std::min(y, plot.bottom() - 1), cell - space, std::max(plot.bottom() - y, 1.0)},
                   fill,
                   {0, 0, 0, 0},
                   0,
                   0},
               fmt::format("bar.{}", bars.first + i), tip, TokenAt{bars.first + i}});
    const std::string text = short_number(value, 2);
    if (style.measure.width(text, number) + 3 < cell && y - plot.y > 10)
      scene.add({Text{{x + cell / 2, y - 4}, text, number, theme.text, Anchor::middle, 0}, "", ""});
  }
  scene.add({Line{{{plot.x, plot.bottom()}, {plot.right(), plot.bottom()}}, theme.faint, 1}, "", ""});
  std::vector<std::pair<double, std::string>> ends;
  for (const TokenBars::Level& level : bars.levels) {
    const double y = std::round(level_of(level.value)) - 0.5;
    for (double x = plot.x; x < plot.right(); x += 8)
      scene.add({Line{{{x, y}, {std::min(x + 4, plot.right()), y}}, theme.muted, 1}, "", ""});
    // Touched at its words: across the bars it would take their clicks.
    scene.add(
        {Box{{plot.right(), y - 6, right, 12}, touchable, {0, 0, 0, 0}, 0, 0}, "level." + level.text, level.tooltip});
    ends.emplace_back(y, level.text);
  }
  if (!bars.line.empty()) {
    Line mean{{}, theme.text, 1.75};
    for (Index i = 0; i < count; ++i)
      if (const double value = nth(bars.line, i); std::isfinite(value))
        mean.points.push_back({plot.x + cell * (static_cast<double>(i) + 0.5), level_of(value)});
    if (!mean.points.empty()) ends.emplace_back(mean.points.back().y, bars.line_title);
    if (mean.points.size() > 1) scene.add({std::move(mean), "line", ""});
  }
  SceneSeries values{bars.unit, {}, bars.values, {}}, levels{bars.unit + ", levels", {}, {}, {}};
  for (Index i = 0; i < count; ++i) {
    values.x.push_back(static_cast<double>(bars.first + i));
    values.labels.push_back(token_label(*bars.tokens, bars.first + i));
  }
  scene.series.push_back(values);
  if (!bars.line.empty()) scene.series.push_back({bars.line_title, values.x, bars.line, values.labels});
  for (const TokenBars::Level& level : bars.levels) {
    levels.x.push_back(std::numeric_limits<double>::quiet_NaN());
    levels.y.push_back(level.value);
    levels.labels.push_back(level.text);
  }
  if (!levels.y.empty()) scene.series.push_back(std::move(levels));
  add_level_words(scene, std::move(ends), plot.right() + 8, plot.bottom(), style);
  add_bottom_axis(scene, axis, plot.x, plot.bottom(), "key", theme.accent, style);
  return scene;
}

}  // namespace headscope
