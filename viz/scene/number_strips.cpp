#include "viz/scene/number_strips.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
double largest_of(const Tensor& values) {
  double largest = 0;
  for (const float v : values.values())
    if (std::isfinite(v)) largest = std::max(largest, std::abs(static_cast<double>(v)));
  return largest > 0 ? largest : 1;
}
}  // namespace

Scene number_strips_scene(const NumberStrips& strips, const Style& style) {
  const Theme& theme = style.theme;
  const Font name = theme.body(), small = theme.caption(), number = theme.number();
  const double scale = theme.text_scale, row = std::round(30 * scale), height = std::round(16 * scale),
               inset = 12 * scale;
  double left = 0, right = 0, all = 0;
  for (const NumberStrip& s : strips.strips) {
    const double in = s.inset ? inset : 0;
    left =
        std::max({left, in + style.measure.width(s.name, name) + 8 + style.measure.width(s.remark, theme.small_token()),
                  in + style.measure.width(s.formula, small)});
    all = std::max(all, largest_of(s.values));
  }
  const auto scale_text = [&](const NumberStrip& s) {
    return strips.one_scale ? std::string() : "±" + short_number(largest_of(s.values), 3);
  };
  double scale_width = 0;
  for (const NumberStrip& s : strips.strips) {
    scale_width = std::max(scale_width, style.measure.width(scale_text(s), theme.small_token()));
    right = std::max(right, style.measure.width(s.number, number));
  }
  left = std::min(std::ceil(left) + 14, 0.42 * strips.width);
  right = std::ceil(right + scale_width) + 22;
  Scene scene;
  scene.background = theme.background;
  scene.width = strips.width;
  scene.title = strips.unit;
  const double wide = std::max(80.0, strips.width - left - right);
  double y = 4;
  for (std::size_t i = 0; i < strips.strips.size(); ++i, y += row) {
    const NumberStrip& s = strips.strips[i];
    const double in = s.inset ? inset : 0, baseline = y + std::round(11 * scale);
    if (s.inset) scene.add({Text{{0, baseline}, "+", name, theme.accent, Anchor::start, 0}, "", ""});
    scene.add({Text{{in, baseline}, s.name, name, theme.text, Anchor::start, 0}, fmt::format("name.{}", i), s.tooltip});
    scene.add({Text{{in + style.measure.width(s.name, name) + 8, baseline},
                    s.remark,
                    theme.small_token(),
                    theme.faint,
                    Anchor::start,
                    0},
               "", ""});
    scene.add({Text{{in, baseline + std::round(12 * scale)},
                    elided(s.formula, small, left - in - 8, style.measure),
                    small,
                    theme.muted,
                    Anchor::start,
                    0},
               "", s.formula});
    Heatmap map;
    map.rect = {left, y + 2, wide, height};
    map.values = s.values.reshape({1, s.values.size()});
    const double high = strips.one_scale ? all : largest_of(s.values);
    map.norm = {Scale::linear, -high, high};
    map.colormap = theme.diverging;
    map.masked_color = theme.masked;
    map.missing_color = theme.missing;
    map.gap = wide / static_cast<double>(s.values.size()) >= 8 ? 1 : 0;
    const Rect rect = map.rect;
    scene.add({std::move(map), fmt::format("strip.{}", i), "", Part{i}});
    scene.add({Box{rect, {0, 0, 0, 0}, with_opacity(theme.line, 0.7), 1, 0}, "", ""});
    scene.add({Text{{rect.right() + 8, rect.y + height / 2 + half_capital(number)},
                    s.number,
                    number,
                    theme.text,
                    Anchor::start,
                    0},
               fmt::format("number.{}", i), s.tooltip});
    scene.add({Text{{strips.width, rect.y + height / 2 + half_capital(number)},
                    scale_text(s),
                    theme.small_token(),
                    theme.faint,
                    Anchor::end,
                    0},
               "", ""});
  }
  const ColorNorm norm = strips.one_scale ? ColorNorm{Scale::linear, -all, all} : ColorNorm{Scale::linear, -1, 1};
  const std::string label =
      strips.one_scale ? strips.unit : say("{} ÷ the largest magnitude of its strip (±)", strips.unit);
  scene.height = std::ceil(
      add_color_bar(scene, {label, norm, theme.diverging, norm.high, false, false}, left, y + 4, wide, style) + 4);
  return scene;
}

}  // namespace headscope
