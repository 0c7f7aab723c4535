#include "viz/scene/singular_values.h"

#include <algorithm>
#include <cmath>

#include "core/base/words.h"
#include "viz/color/color_norm.h"

namespace headscope {

namespace {

/// Round values beside a plot, with thin lines across it.
void side_axis(Scene& scene, const Rect& plot, double high, int count, const Style& style) {
  const Font font = style.theme.small_token();
  for (const Tick& tick : ticks(ColorNorm{Scale::linear, 0, high}, count)) {
    const double y = plot.bottom() - plot.h * tick.value / high;
    scene.add({Line{{{plot.x, y}, {plot.right(), y}}, with_opacity(style.theme.line, 0.6), 1}, "", ""});
    scene.add({Text{{plot.x - 6, y + 4}, tick.text, font, style.theme.faint, Anchor::end, 0}, "", ""});
  }
}

}  // namespace

Scene singular_values_scene(const SingularValuesChart& chart, const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.caption(), number = theme.small_token();
  const double line = std::round(16 * theme.text_scale), left = std::round(44 * theme.text_scale);
  Scene scene;
  scene.background = theme.background;
  scene.width = chart.width;
  scene.height = chart.height;
  scene.title = said("singular values and their scales");
  if (chart.values.empty()) {
    scene.add(
        {Text{{chart.width / 2, chart.height / 2}, said("no singular values"), font, theme.faint, Anchor::middle, 0},
         "", ""});
    return scene;
  }
  // Two captions, two plots, the numbers below.
  const double room = chart.height - 3 * line - 14, above = std::round(0.66 * room);
  const Rect values{left, line, chart.width - left - 2, above},
      scales{left, line + above + line + 10, chart.width - left - 2, room - above};
  double highest = 0;
  for (std::size_t i = 0; i < chart.values.size(); ++i)
    highest = std::max({highest, chart.values[i], std::abs(chart.values[i] * chart.z[i])});
  const double high = highest > 0 ? highest * 1.04 : 1;

  scene.add(
      {Text{
           {left, line - 5}, said("σ, largest first: as they are (grey) and z σ"), font, theme.muted, Anchor::start, 0},
       "title.values", ""});
  scene.add({Text{{left, scales.y - 5}, "z", font, theme.muted, Anchor::start, 0}, "title.z", ""});
  side_axis(scene, values, high, std::max(2, static_cast<int>(values.h / 40)), style);
  side_axis(scene, scales, chart.most, 2, style);

  const auto count = static_cast<double>(chart.values.size());
  const double step = values.w / count, gap = step >= 4 ? std::min(2.0, step / 4) : 0;
  const Color as_it_is = mix(theme.muted, theme.background, 0.55);
  for (std::size_t i = 0; i < chart.values.size(); ++i) {
    const double x = values.x + step * static_cast<double>(i), wide = std::max(step - gap, 0.75);
    const auto bar = [&](const Rect& plot, double share, Color color) {
      const double tall = plot.h * std::clamp(share, 0.0, 1.0);
      if (tall > 0) scene.add({Box{{x, plot.bottom() - tall, wide, tall}, color, {0, 0, 0, 0}, 0, 0}, "", ""});
    };
    const double z = chart.z[i], scaled = std::abs(z) * chart.values[i];
    // A negative scale turns the direction round: the colour of what is below zero.
    const Color now = z < 0 ? theme.key : theme.accent;
    bar(values, chart.values[i] / high, as_it_is);
    bar(values, scaled / high, with_opacity(now, z == 1 ? 0.55 : 0.95));
    bar(scales, std::abs(z) / chart.most, with_opacity(now, z == 1 ? 0.3 : 0.85));
    if (chart.chosen && *chart.chosen == static_cast<Index>(i))
      for (const Rect& plot : {values, scales})
        scene.add({Box{{x - 1, plot.y, wide + 2, plot.h}, {0, 0, 0, 0}, theme.text, 1, 1}, "", ""});
  }
  const double one = scales.bottom() - scales.h / chart.most;
  scene.add({Line{{{scales.x, one}, {scales.right(), one}}, theme.muted, 1}, "", ""});
  for (const Rect& plot : {values, scales})
    scene.add({Line{{{plot.x, plot.bottom()}, {plot.right(), plot.bottom()}}, theme.line, 1}, "", ""});

  // 1, then round numbers.
  const auto size = static_cast<int>(chart.values.size());
  int every = 1;
  for (int power = 1; size / every > values.w / 60; power *= 10)
    for (const int digit : {1, 2, 5})
      if (size / every > values.w / 60) every = digit * power;
  for (int i = 1; i <= size; i = i == 1 && every > 1 ? every : i + every)
    scene.add({Text{{values.x + step * (i - 0.5), scales.bottom() + line - 3},
                    std::to_string(i),
                    number,
                    theme.faint,
                    Anchor::middle,
                    0},
               "", ""});
  SceneSeries own{"σ", {}, chart.values, {}}, scales_z{"z", {}, chart.z, {}}, products{"z σ", {}, {}, {}};
  for (std::size_t i = 0; i < chart.values.size(); ++i) {
    own.x.push_back(static_cast<double>(i + 1));
    products.y.push_back(chart.z[i] * chart.values[i]);
  }
  scales_z.x = products.x = own.x;
  scene.series = {std::move(own), std::move(scales_z), std::move(products)};
  scene.add({Box{values, {0, 0, 0, 0}, {0, 0, 0, 0}, 0, 0}, "values", ""});
  scene.add({Box{scales, {0, 0, 0, 0}, {0, 0, 0, 0}, 0, 0}, "z", ""});
  return scene;
}

}  // namespace headscope
