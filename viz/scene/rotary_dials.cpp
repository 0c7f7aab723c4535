#include "viz/scene/rotary_dials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "core/base/nth.h"

#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double pi = std::numbers::pi;

/// Angles grow against the clock, as in mathematics; y grows downwards.
Point on_circle(Point center, double radius, double angle) {
  return {center.x + radius * std::cos(angle), center.y - radius * std::sin(angle)};
}

Line arc(Point center, double radius, double from, double turn, Color color, double width) {
  Line line{{}, color, width};
  const double shown = std::min(std::abs(turn), 2 * pi) * (turn < 0 ? -1 : 1);
  const int steps = std::max(2, static_cast<int>(std::ceil(std::abs(shown) / 0.12)));
  for (int s = 0; s <= steps; ++s) line.points.push_back(on_circle(center, radius, from + shown * s / steps));
  return line;
}

std::string wavelength_text(double tokens) {
  if (tokens < 100) return fmt::format("{:.1f}", tokens);
  if (tokens >= 1e7) return short_number(tokens, 2);
  std::string digits = fmt::format("{:.0f}", tokens);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

}  // namespace

Scene rotary_dials_scene(const DialsOptions& options, const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.caption();
  const double line = std::round(14 * theme.text_scale);
  const auto count = static_cast<int>(options.dials.size());
  double widest = 0;
  for (int i = 0; i < count; ++i)
    widest =
        std::max(widest, style.measure.width(say("λ {} tok", wavelength_text(nth(options.dials, i).wavelength)), font));
  const double least = std::max(widest + 8, 64.0), below = 2 * line + 22;
  const int most_columns = std::max(1, std::min(count, static_cast<int>(options.width / least)));
  // As many rows as make the dials largest; even ones where that is the same.
  int columns = most_columns;
  double diameter = 0;
  for (int rows = 1; rows <= std::max(count, 1); ++rows) {
    const int across = (count + rows - 1) / rows;
    if (across > most_columns) continue;
    const double by_width = options.width / std::max(across, 1) - 18;
    const double by_height = options.height > 0 ? options.height / rows - below : options.largest;
    const double fits = std::min({options.largest, by_width, by_height});
    if (fits > diameter + 1) diameter = fits, columns = across;
    if (options.height <= 0) break;
  }
  diameter = std::max(diameter, 24.0);
  const int rows = (count + columns - 1) / std::max(columns, 1);
  const double pitch = options.width / std::max(columns, 1);
  const double radius = diameter / 2, needed = diameter + below;
  const double row_height = std::max(needed, options.height / std::max(rows, 1));  // spare height parts the rows

  Scene scene;
  scene.background = theme.background;
  scene.title = said("Rotary pairs");
  scene.width = options.width;
  scene.height = rows * row_height;
  const auto series = [&](std::string title, const std::function<double(const Dial&)>& value) {
    SceneSeries numbers{std::move(title), {}, {}, {}};
    for (int i = 0; i < count; ++i) {
      numbers.x.push_back(i);
      numbers.y.push_back(value(nth(options.dials, i)));
    }
    scene.series.push_back(std::move(numbers));
  };
  series("wavelength, tokens", [](const Dial& d) { return d.wavelength; });
  series("query, radians after turning", [](const Dial& d) { return d.query_angle + d.query_turn; });
  series("query, share of the radius", [](const Dial& d) { return d.query_length; });
  series("key, radians after turning", [](const Dial& d) { return d.key_angle + d.key_turn; });
  series("key, share of the radius", [](const Dial& d) { return d.key_length; });
  for (int i = 0; i < count; ++i) {
    const Dial& dial = nth(options.dials, i);
    const Point center{pitch * (i % columns + 0.5),
                       row_height * (i / columns) + (row_height - needed) / 2 + radius + 6};
    const double strength = dial.faint ? 0.35 : 1;
    scene.add({Box{{center.x - radius, center.y - radius, diameter, diameter}, {0, 0, 0, 0}, theme.line, 1.25, radius},
               "", ""});
    const auto hand = [&](double angle, double turn, double length, double ring, Color color) {
      if (length <= 0) return;
      if (turn != 0)
        scene.add({arc(center, radius * ring, angle, turn, with_opacity(color, 0.38 * strength), 3), "", ""});
      scene.add({Line{{center, on_circle(center, radius * std::max(length, 0.05), angle + turn)},
                      with_opacity(color, strength),
                      2.75},
                 "", ""});
    };
    hand(dial.query_angle, dial.query_turn, dial.query_length, 0.62, theme.query);
    hand(dial.key_angle, dial.key_turn, dial.key_length, 0.48, theme.key);
    // The whole dial answers to the pointer.
    scene.add({Box{{center.x - radius, center.y - radius, diameter, diameter}, {0, 0, 0, 1}, {0, 0, 0, 0}, 0, radius},
               fmt::format("dial.{}", i), dial.tooltip});
    const double base = center.y + radius + line + 4;
    scene.add({Text{{center.x, base},
                    fmt::format("{} {}", said(options.noun), i),
                    font,
                    dial.faint ? theme.faint : theme.muted,
                    Anchor::middle,
                    0},
               "", ""});
    scene.add({Text{{center.x, base + line},
                    say("λ {} tok", wavelength_text(dial.wavelength)),
                    font,
                    theme.faint,
                    Anchor::middle,
                    0},
               "", ""});
  }
  return scene;
}

Scene wavelengths_scene(const Wavelengths& options, const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.caption(), number = theme.small_token();
  const double line = std::round(14 * theme.text_scale);
  Scene scene;
  scene.background = theme.background;
  scene.title = said("Wavelengths of the rotary pairs");
  scene.width = options.width;
  scene.height = options.height;
  double low = 1, high = 10;
  for (const auto* all : {&options.own, &options.changed})
    for (const double each : *all)
      if (std::isfinite(each) && each > 0) high = std::max(high, each);
  high = std::max(high, options.context);
  low = std::pow(10.0, std::floor(std::log10(low)));
  high = std::pow(10.0, std::ceil(std::log10(high) - 1e-9));
  const double left = style.measure.width("10⁻¹⁰", number) + 10;
  const Rect plot{left, line + 8, options.width - left - 8, options.height - 3 * line - 12};
  const auto place = [&](double value) {
    return plot.bottom() - plot.h * std::log(std::clamp(value, low, high) / low) / std::log(high / low);
  };
  scene.add({Text{{0, line - 3}, said("tokens in a full turn"), font, theme.muted, Anchor::start, 0}, "", ""});
  const double decades = std::log10(high / low), step = std::max(1.0, std::ceil(decades / (plot.h / 26)));
  for (double decade = 0; decade <= decades + 1e-9; decade += step) {
    const double value = low * std::pow(10.0, decade), y = place(value);
    scene.add({Line{{{plot.x, y}, {plot.right(), y}}, with_opacity(theme.line, 0.8), 1}, "", ""});
    scene.add({Text{{plot.x - 6, y + half_capital(number)},
                    power_of_ten(static_cast<int>(std::lround(std::log10(value)))),
                    number,
                    theme.faint,
                    Anchor::end,
                    0},
               "", ""});
  }
  const double pitch = plot.w / static_cast<double>(std::max<std::size_t>(options.own.size(), 1));
  const double bar = std::max(2.0, std::min(26.0, pitch * 0.55));
  double taken = -1e9;
  for (std::size_t i = 0; i < options.own.size(); ++i) {
    const double x = plot.x + pitch * (static_cast<double>(i) + 0.5);
    const double own = options.own[i], changed = options.changed.empty() ? own : options.changed[i];
    const bool moves = std::abs(std::log(changed / own)) > 1e-9;
    const bool whole = options.context <= 0 || own <= options.context;
    const Color color = whole ? theme.accent : theme.key;
    std::string tip = say("pair {}: λ {} tokens", i, wavelength_text(own));
    if (moves) tip += fmt::format(" → {} (× {})", wavelength_text(changed), short_number(changed / own, 3));
    if (options.context > 0)
      tip += say("; {} turns within the trained {} tokens", short_number(options.context / own, 3),
                 wavelength_text(options.context));
    const double y = place(own);
    scene.add({Box{{x - bar / 2, y, bar, std::max(plot.bottom() - y, 1.0)},
                   with_opacity(color, moves ? 0.45 : 0.8),
                   {0, 0, 0, 0},
                   0,
                   2},
               fmt::format("pair.{}", i), tip});
    if (moves) {
      const double to = place(changed);
      scene.add({Line{{{x, y}, {x, to}}, theme.text, 1.5}, "", ""});
      scene.add(
          {Box{{x - bar / 2, to - 1.5, bar, 3}, theme.text, {0, 0, 0, 0}, 0, 1}, fmt::format("changed.{}", i), tip});
    }
    const std::string label = fmt::format("{}", i);
    const double w = style.measure.width(label, number);
    if (x - w / 2 < taken + 5) continue;
    taken = x + w / 2;
    scene.add({Text{{x, plot.bottom() + line}, label, number, theme.faint, Anchor::middle, 0}, "", ""});
  }
  SceneSeries own{"wavelength, tokens", {}, options.own, {}};
  for (std::size_t i = 0; i < options.own.size(); ++i) own.x.push_back(static_cast<double>(i));
  if (!options.changed.empty())
    scene.series.push_back({"wavelength after the change, tokens", own.x, options.changed, {}});
  scene.series.insert(scene.series.begin(), std::move(own));
  scene.add({Text{{plot.right(), plot.bottom() + 2 * line}, said("pair"), font, theme.faint, Anchor::end, 0}, "", ""});
  if (options.context > 0) {
    const double y = place(options.context);
    scene.add({Line{{{plot.x, y}, {plot.right(), y}}, theme.value, 1.5}, "context", ""});
    scene.add({Text{{plot.x + 4, y - 4},
                    say("trained context {}", wavelength_text(options.context)),
                    font,
                    theme.value,
                    Anchor::start,
                    0},
               "", ""});
  }
  return scene;
}

}  // namespace headscope
