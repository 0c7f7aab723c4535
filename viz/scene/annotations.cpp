#include "viz/scene/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double bar_height = 10, bar_width = 240, swatch = 10;

double add_badge(Scene& scene, const Badge& badge, double x, double middle, double width, const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.badge();
  const double pad = 7 * theme.text_scale, height = std::round(20 * theme.text_scale);
  const std::string text = elided(printable(badge.text), font, width - 2 * pad, style.measure);
  const Color ground = over(with_opacity(badge.color, 0.2), theme.background);
  const double w = std::ceil(style.measure.width(text, font) + 2 * pad);
  scene.add({Box{{x, middle - height / 2, w, height}, ground, {0, 0, 0, 0}, 0, 4}, "badge", ""});
  scene.add(
      {Text{{x + pad, middle + half_capital(font)}, text, font, readable(badge.color, ground, theme), Anchor::start, 0},
       "badge.text", ""});
  return x + w;
}

/// Facts flow like words: label in the quiet colour, value in the strong one.
double add_facts(Scene& scene, const Header& header, double x, double y, double width, const Style& style) {
  const Theme& theme = style.theme;
  const Font label_font = theme.body();
  Font value_font = theme.body();
  value_font.weight = 500;
  const double line = std::round(18 * theme.text_scale), between = 18 * theme.text_scale, space = 5 * theme.text_scale;
  double at = x;
  int index = 0;
  for (const auto& [label, value] : header.facts) {
    const std::string name = printable(label), number = printable(value);
    const double name_width = style.measure.width(name, label_font) + space;
    const double all = name_width + style.measure.width(number, value_font);
    if (at > x && at + all > x + width) at = x, y += line;
    scene.add({Text{{at, y + line - 5}, name, label_font, theme.muted, Anchor::start, 0}, "", ""});
    scene.add({Text{{at + name_width, y + line - 5}, number, value_font, theme.text, Anchor::start, 0},
               fmt::format("fact.{}", index++), ""});
    at += all + between;
  }
  return y + line;
}

}  // namespace

Color readable(Color color, Color ground, const Theme& theme) {
  const Color toward = readable_on(ground, rgb(0x000000), rgb(0xFFFFFF));
  for (double t = 0; t < 1; t += 0.05)
    if (const Color mixed = mix(color, toward, t); contrast(mixed, ground) >= 4.5) return mixed;
  return theme.text;
}

double add_header(Scene& scene, const Header& header, double x, double y, double width, const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.title();
  const double line = std::round(24 * theme.text_scale);
  const std::string title = elided(printable(header.title), font, width, style.measure);
  const double middle = y + line / 2;
  scene.add({Text{{x, middle + half_capital(font)}, title, font, theme.text, Anchor::start, 0}, "title", ""});
  const double after_title = x + std::ceil(style.measure.width(title, font)) + 12;
  y += line;
  if (!header.badge.text.empty()) {
    const double badge = style.measure.width(printable(header.badge.text), theme.badge()) + 14 * theme.text_scale;
    if (after_title + badge <= x + width) {
      add_badge(scene, header.badge, after_title, middle, x + width - after_title, style);
    } else {
      add_badge(scene, header.badge, x, y + line / 2, width, style);
      y += line;
    }
  }
  if (!header.subtitle.empty()) {
    const double step = std::round(18 * theme.text_scale);
    const std::string text = elided(printable(header.subtitle), theme.body(), width, style.measure);
    scene.add({Text{{x, y + step - 5}, text, theme.body(), theme.muted, Anchor::start, 0}, "subtitle", ""});
    y += step;
  }
  if (!header.facts.empty()) y = add_facts(scene, header, x, y, width, style);
  return y;
}

double add_color_bar(Scene& scene, const ColorBar& bar, double x, double y, double width, const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.caption();
  const double line = std::round(15 * theme.text_scale);
  scene.add(
      {Text{{x, y + line - 4}, elided(bar.label, font, width, style.measure), font, theme.muted, Anchor::start, 0},
       "colorbar.label", ""});
  y += line + 2;

  const double w = std::min(std::round(bar_width * theme.text_scale), width - 16);
  Heatmap ramp;
  ramp.rect = {x, y, w, bar_height};
  ramp.values = Tensor::uninitialized({1, Colormap::size});
  for (Index i = 0; i < Colormap::size; ++i) ramp.values.ref(0, i) = static_cast<float>(i) / (Colormap::size - 1);
  ramp.colormap = bar.colormap;  // the ramp runs over units, whatever values they stand for
  scene.add({std::move(ramp), "colorbar", "", Aside::color_bar});
  // The pale end of a map must not run out into pale paper.
  scene.add({Box{{x - 0.5, y - 0.5, w + 1, bar_height + 1}, {0, 0, 0, 0}, theme.line, 1, 0}, "", ""});
  double end = x + w;
  const double ticks_y = y + bar_height;
  int index = 0;
  std::vector<Tick> all = ticks(bar.norm);
  for (Tick& tick : all) {
    if (bar.norm.scale == Scale::log && tick.unit == 0) tick.text = "≤ " + tick.text;
    if (tick.unit == 1 && bar.norm.scale != Scale::per_row && bar.highest > bar.norm.high * (1 + 1e-6))
      tick.text = "≥ " + tick.text;
  }
  // The ends are always written, and stay inside the bar's own width, so nothing sticks out of the block; on a short
  // bar the others give way.
  const double last_width = all.empty() ? 0 : style.measure.width(all.back().text, font);
  constexpr double gap = 8;  // below it two numbers read as one
  double taken = -1e9;
  for (const Tick& tick : all) {
    const double at = x + tick.unit * w, text_width = style.measure.width(tick.text, font);
    scene.add({Line{{{at, ticks_y + 1}, {at, ticks_y + 4}}, theme.faint, 1}, "", ""});
    const bool outer = tick.unit == 0 || tick.unit == 1;
    const Anchor anchor = tick.unit == 0 ? Anchor::start : tick.unit == 1 ? Anchor::end : Anchor::middle;
    const double left = anchor == Anchor::start ? at : anchor == Anchor::end ? at - text_width : at - text_width / 2;
    if (!outer && (left < taken + gap || left + text_width > x + w - last_width - gap)) continue;
    taken = left + text_width;
    scene.add({Text{{at, ticks_y + 4 + line - 4}, tick.text, font, theme.muted, anchor, 0},
               fmt::format("colorbar.tick.{}", index++), ""});
  }
  const double bottom = ticks_y + 4 + line;

  double at = end + 20, middle = y + bar_height / 2, lower = bottom;
  const auto explain = [&](const std::string& text, Color color, const char* id) {
    const double room = swatch + 6 + style.measure.width(text, font);
    if (at + room > x + width) at = x, middle = lower + line / 2 + 4, lower += line + 4;
    scene.add({Box{{at, middle - swatch / 2, swatch, swatch}, color, theme.line, 1, 0}, "", ""});
    scene.add(
        {Text{{at + swatch + 6, middle + half_capital(font)}, text, font, theme.muted, Anchor::start, 0}, id, ""});
    at += room + 16;
  };
  if (bar.masked) explain(said(bar.masked_text), theme.masked, "legend.masked");
  if (bar.missing) explain(said(bar.missing_text), theme.missing, "legend.missing");
  return lower;
}

double add_caption(Scene& scene, const std::string& text, double x, double y, double width, const Style& style) {
  const Font font = style.theme.caption();
  const double line = std::round(15 * style.theme.text_scale);
  int index = 0;
  for (const std::string& part : wrapped(text, font, width, style.measure)) {
    scene.add({Text{{x, y + line - 4}, part, font, style.theme.faint, Anchor::start, 0},
               fmt::format("caption.{}", index++), ""});
    y += line;
  }
  return y;
}

std::string head_title(HeadId head) {
  return say("Layer {} · Head {}", head.layer, head.head);
}

std::string describe_run(const Trace& trace) {
  std::string out = trace.model.name.empty() ? "" : trace.model.name + " · ";
  if (trace.merged_tokens > 0)
    out += say("{} words of {} tokens", trace.tokens.size(), trace.merged_tokens);
  else if (trace.between_texts())
    out += say("{} × {} tokens", trace.query_tokens.size(), trace.tokens.size());
  else
    out += trace.tokens.size() == 1 ? said("1 token") : say("{} tokens", trace.tokens.size());
  if (trace.text.empty()) return printable(out);
  std::string text = trace.text.substr(0, 400);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  text = printable(text, 300);  // ends at a whole character
  return printable(out) + " · “" + text + (trace.text.size() > text.size() ? "…" : "”");
}

std::string describe_weights(MapKind kind, Scale scale) {
  const std::string what = kind == MapKind::difference  ? said("change of attention weight")
                           : kind == MapKind::effective ? said("effective weight")
                                                        : said("attention weight (probability)");
  switch (scale) {
    case Scale::linear:
      return say("{}, linear", what);
    case Scale::log:
      return say("{}, logarithmic", what);
    case Scale::per_row:
      return say("{} ÷ largest of its row", what);
  }
  return what;
}

}  // namespace headscope
