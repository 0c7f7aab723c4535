#include "viz/scene/tile_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/text.h"

namespace headscope {

Scene tile_machine_scene(const TileMachine& machine, const Style& style) {
  const Theme& theme = style.theme;
  const Font caption = theme.caption(), number = theme.number();
  const Font strong = theme.title();
  const double scale = theme.text_scale, line = std::round(16 * scale), gap = 22;
  Scene scene;
  scene.background = theme.background;
  scene.width = machine.width;
  scene.height = machine.height;
  scene.title = machine.state;
  const auto write = [&](double x, double y, const std::string& text, const Font& font, Color color,
                         Anchor anchor = Anchor::start, const std::string& id = "") {
    scene.add({Text{{x, y}, text, font, color, anchor, 0}, id, ""});
  };

  // ---- slow memory: every matrix a column of its rows
  const double slow = std::round(machine.width * 0.32), top = line + 8, foot = 2 * line + 4;
  const double tall = machine.height - top - foot;
  write(0, line - 4, said("SLOW MEMORY"), caption, theme.faint);
  const double each = slow / static_cast<double>(std::max<std::size_t>(machine.slow.size(), 1));
  Index most = 1;
  for (const TileMachine::Block& block : machine.slow) most = std::max(most, block.rows);
  for (std::size_t b = 0; b < machine.slow.size(); ++b) {
    const TileMachine::Block& block = machine.slow[b];
    const double left = each * static_cast<double>(b), wide = std::min(each - 14, 64.0);
    const double row = tall / static_cast<double>(most), height = row * static_cast<double>(block.rows);
    scene.add(
        {Box{{left, top, wide, height}, mix(block.color, theme.background, 0.82), with_opacity(block.color, 0.6), 1, 2},
         "slow." + block.name, say("{}: {} rows of {} numbers", block.name, block.rows, block.width)});
    if (block.last > block.first)
      scene.add({Box{{left, top + row * static_cast<double>(block.first), wide,
                      std::max(2.0, row * static_cast<double>(block.last - block.first))},
                     block.color,
                     {0, 0, 0, 0},
                     0,
                     1},
                 "held." + block.name,
                 say("rows {}–{} of {} lie in fast memory", block.first, block.last - 1, block.name)});
    const std::string shape = fmt::format("{} {}×{}", block.name, block.rows, block.width);
    const bool room = style.measure.width(shape, number) <= each - 4;
    write(left, top + tall + line, room ? shape : block.name, number, theme.text);
    // "3.07 kB read": the number, where there is no room for more.
    const std::string crossed = style.measure.width(block.crossed, caption) <= each - 2
                                    ? block.crossed
                                    : block.crossed.substr(0, block.crossed.rfind(' '));
    write(left, top + tall + 2 * line - 1, elided(crossed, caption, each - 2, style.measure), caption, theme.muted);
  }

  // ---- what has crossed
  const double middle = slow + gap, wide = std::round(machine.width * 0.36);
  write(middle, line - 4, said("MOVED BETWEEN THEM"), caption, theme.faint);
  write(middle, top + strong.size + 4, quantity(machine.moved, "B"), strong, theme.text, Anchor::start, "bytes");
  write(middle + wide, top + strong.size + 4, machine.state, theme.body(), theme.text, Anchor::end, "state");
  double largest = std::max(machine.moved, 1.0);
  for (const TileMachine::Level& level : machine.levels) largest = std::max(largest, level.bytes);
  double y = top + strong.size + 18;
  scene.add({Box{{middle, y, wide, 8}, with_opacity(theme.line, 0.5), {0, 0, 0, 0}, 0, 2}, "", ""});
  scene.add({Box{{middle, y, wide * machine.moved / largest, 8}, theme.accent, {0, 0, 0, 0}, 0, 2}, "moved",
             say("{:.0f} bytes", machine.moved)});
  y += 8;
  for (std::size_t i = 0; i < machine.levels.size(); ++i) {
    const TileMachine::Level& level = machine.levels[i];
    const double x = middle + wide * level.bytes / largest;
    scene.add({Line{{{x, y - 11}, {x, y + 3}}, theme.muted, 1.5}, fmt::format("level.{}", i),
               say("{:.0f} bytes", level.bytes)});
    const double below = y + line * static_cast<double>(i + 1);
    const std::string size = quantity(level.bytes, "B");
    write(middle, below, size, number, theme.text);
    const double after = std::round(62 * scale);
    write(middle + after, below, elided(level.words, caption, wide - after, style.measure), caption, theme.muted);
  }

  // ---- fast memory
  const double fast = middle + wide + gap, room = machine.width - fast;
  write(fast, line - 4, said("FAST MEMORY"), caption, theme.faint);
  double x = fast;
  y = top + 2;
  const double box = std::round(20 * scale);
  const auto tile = [&](const std::string& words, Color color) {
    const double w = style.measure.width(words, number) + 14;
    if (x > fast && x + w > machine.width) x = fast, y += box + 6;
    scene.add({Box{{x, y, w, box}, mix(color, theme.background, 0.8), with_opacity(color, 0.8), 1, 3}, "", ""});
    write(x + w / 2, y + box / 2 + half_capital(number), words, number, theme.text, Anchor::middle);
    x += w + 6;
  };
  for (const TileMachine::Block& block : machine.slow)
    if (block.last > block.first)
      tile(fmt::format("{} {}×{}", block.name, block.last - block.first, block.width), block.color);
  for (const std::string& each_kept : machine.kept) tile(each_kept, theme.muted);
  y += box + line + 2;
  for (std::size_t i = 0; i < machine.row.size(); ++i)
    write(fast, y + line * static_cast<double>(i),
          elided(machine.row[i], i == 0 ? caption : number, room, style.measure), i == 0 ? caption : number,
          i == 0 ? theme.muted : theme.text, Anchor::start, fmt::format("row.{}", i));
  SceneSeries bytes{"bytes moved", {0}, {machine.moved}, {machine.state}};
  for (const TileMachine::Level& level : machine.levels) {
    bytes.x.push_back(static_cast<double>(bytes.x.size()));
    bytes.y.push_back(level.bytes);
    bytes.labels.push_back(level.words);
  }
  scene.series.push_back(std::move(bytes));
  return scene;
}

}  // namespace headscope
