#include "viz/scene/token_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/nth.h"

#include "core/base/words.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double chip_pad = 5, chip_gap = 3, fall = 24, block_gap = 14;

struct Strip {
  const Trace& trace;
  std::vector<double> widths;
  std::vector<Rect> chips;
  Strip(const Trace& t, const Style& style) : trace(t), chips(t.tokens.size()) {
    for (std::size_t i = 0; i < t.tokens.size(); ++i)
      widths.push_back(
          std::ceil(style.measure.width(token_label(t, static_cast<Index>(i)), style.theme.token()) + 2 * chip_pad));
  }
};

/// Where a block of lines ends: the largest (i, j) after (from_a, from_b) whose tokens fit, never between two partners.
std::pair<std::size_t, std::size_t> block_end(const Strip& a, const Strip& b, std::span<const int> partner,
                                              std::size_t from_a, std::size_t from_b, double room) {
  std::size_t i = from_a, j = from_b;
  double used_a = 0, used_b = 0;
  while (i < a.widths.size() || j < b.widths.size()) {
    // The next token of `a`, with all of `b` up to its partner where that lies ahead.
    const std::size_t next_i = std::min(i + 1, a.widths.size());
    std::size_t next_j = j;
    if (i == a.widths.size())
      next_j = b.widths.size();
    else if (const int other = partner[i]; other >= static_cast<int>(j))
      next_j = static_cast<std::size_t>(other) + 1;
    double more_a = 0, more_b = 0;
    for (std::size_t k = i; k < next_i; ++k) more_a += a.widths[k] + chip_gap;
    for (std::size_t k = j; k < next_j; ++k) more_b += b.widths[k] + chip_gap;
    if (used_a + more_a > room || used_b + more_b > room) {
      if (i > from_a || j > from_b) break;
      // A stretch of `b` longer than a line is cut where the line ends.
      while (j < next_j && (used_b += b.widths[j] + chip_gap) <= room) ++j;
      if (j == from_b && i == from_a) return {std::min(i + 1, a.widths.size()), std::min(j + 1, b.widths.size())};
      break;
    }
    used_a += more_a;
    used_b += more_b;
    i = next_i;
    j = next_j;
  }
  return {i, j};
}

}  // namespace

Scene token_pairs_scene(const Trace& a, const Trace& b, const TokenPairsOptions& options, const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.token();
  Font name_font = theme.caption();
  name_font.weight = 600;
  Strip top(a, style), bottom(b, style);
  std::vector<int> partner(options.partner.begin(), options.partner.end());
  partner.resize(a.tokens.size(), -1);
  std::vector<char> has_partner(b.tokens.size());
  for (int& other : partner)
    if (other >= static_cast<int>(b.tokens.size())) other = -1;
  for (const int other : partner)
    if (other >= 0) nth(has_partner, other) = 1;

  Scene scene;
  scene.background = theme.background;
  scene.width = options.width;
  scene.title = said("which token stands for which");
  const double chip = std::round(21 * theme.text_scale);
  const double name_width = std::clamp(std::max(style.measure.width(printable(options.name_a), name_font),
                                                style.measure.width(printable(options.name_b), name_font)),
                                       12.0, 120.0);
  const double left = std::ceil(name_width) + 10, room = std::max(options.width - left, 80.0);
  double y = 1;
  for (std::size_t i = 0, j = 0; i < top.widths.size() || j < bottom.widths.size();) {
    const auto [end_i, end_j] = block_end(top, bottom, partner, i, j, room);
    const auto place = [&](Strip& strip, std::size_t from, std::size_t to, double at) {
      double x = left;
      for (std::size_t k = from; k < to; ++k) {
        strip.chips[k] = {x, at, std::min(strip.widths[k], room), chip};
        x += strip.widths[k] + chip_gap;
      }
    };
    place(top, i, end_i, y);
    place(bottom, j, end_j, y + chip + fall);
    for (const auto& [words, at] : {std::pair{&options.name_a, y}, std::pair{&options.name_b, y + chip + fall}})
      scene.add({Text{{0, at + chip / 2 + half_capital(name_font)},
                      elided(printable(*words), name_font, name_width, style.measure),
                      name_font,
                      theme.muted,
                      Anchor::start,
                      0},
                 "", ""});
    y += 2 * chip + fall + block_gap;
    i = end_i;
    j = end_j;
  }
  const Color odd = readable_on(theme.background, rgb(0x9A5B00), rgb(0xFFB13B));
  const auto differ = [&](std::size_t i) { return a.tokens[i].label != nth(b.tokens, partner[i]).label; };
  for (std::size_t i = 0; i < partner.size(); ++i) {
    if (partner[i] < 0) continue;
    const Rect from = top.chips[i], to = nth(bottom.chips, partner[i]);
    const double x0 = from.center().x, x1 = to.center().x, y0 = from.bottom() + 1, y1 = to.y - 1;
    const bool other = differ(i);
    scene.add({Curve{{x0, y0},
                     {x0, (y0 + y1) / 2},
                     {x1, (y0 + y1) / 2},
                     {x1, y1},
                     other ? theme.accent : theme.faint,
                     other ? 2.0 : 1.25},
               fmt::format("pair.{}", i), ""});
  }
  const auto draw = [&](const Strip& strip, const char* id, auto paired, auto other) {
    for (std::size_t i = 0; i < strip.chips.size(); ++i) {
      const bool alone = !paired(i);
      const Color ground = alone      ? mix(theme.background, odd, 0.14)
                           : other(i) ? mix(theme.background, theme.accent, 0.22)
                                      : theme.masked;
      const std::string label = token_label(strip.trace, static_cast<Index>(i));
      scene.add({Box{strip.chips[i], ground, alone ? odd : Color{0, 0, 0, 0}, alone ? 1.25 : 0.0, 4},
                 fmt::format("{}.{}", id, i),
                 say("{} {}, position {}{}", id[0] == 'a' ? printable(options.name_a) : printable(options.name_b),
                     label, i, alone ? said(": no partner") : ""),
                 TokenAt{static_cast<Index>(i), id[0] == 'a' ? 0 : 1}});
      scene.add({Text{{strip.chips[i].center().x, strip.chips[i].center().y + half_capital(font)},
                      elided(label, font, strip.chips[i].w - 4, style.measure),
                      font,
                      theme.text,
                      Anchor::middle,
                      0},
                 "", ""});
    }
  };
  SceneSeries pairs{printable(options.name_b) + " by " + printable(options.name_a), {}, {}, {}};
  for (std::size_t i = 0; i < partner.size(); ++i) {
    pairs.x.push_back(static_cast<double>(i));
    pairs.y.push_back(partner[i] < 0 ? std::numeric_limits<double>::quiet_NaN() : partner[i]);
    pairs.labels.push_back(token_label(a, static_cast<Index>(i)));
  }
  scene.series.push_back(std::move(pairs));
  std::vector<char> changed(b.tokens.size());
  for (std::size_t i = 0; i < partner.size(); ++i)
    if (partner[i] >= 0 && differ(i)) nth(changed, partner[i]) = 1;
  draw(
      top, "a", [&](std::size_t i) { return partner[i] >= 0; },
      [&](std::size_t i) { return partner[i] >= 0 && differ(i); });
  draw(
      bottom, "b", [&](std::size_t i) { return has_partner[i] != 0; }, [&](std::size_t i) { return changed[i] != 0; });
  scene.description = said("lines join tokens that correspond");
  scene.height = std::max(1.0, y - block_gap + 1);
  return scene;
}

}  // namespace headscope
