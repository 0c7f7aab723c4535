#include "viz/scene/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/text.h"

namespace headscope {

Scene histogram_scene(const Histogram& histogram, const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.caption(), number = theme.small_token();
  const double line = std::round(15 * theme.text_scale);
  Scene scene;
  scene.background = theme.background;
  scene.width = histogram.width;
  scene.height = histogram.height;
  scene.title = histogram.title;
  scene.add({Text{{0, line - 3}, histogram.title, font, theme.muted, Anchor::start, 0}, "title", ""});
  if (style.measure.width(histogram.title, font) + style.measure.width(histogram.remark, font) + 16 < histogram.width)
    scene.add({Text{{histogram.width, line - 3}, histogram.remark, font, theme.faint, Anchor::end, 0}, "remark", ""});

  const auto counts = histogram.counts;
  const auto counted = [](std::uint32_t count) { return count > 0; };
  const auto first = std::ranges::find_if(counts, counted);
  if (first == counts.end()) {
    scene.add({Text{{histogram.width / 2, histogram.height / 2},
                    say("no {} offered evidence", said(histogram.noun)),
                    font,
                    theme.faint,
                    Anchor::middle,
                    0},
               "", ""});
    return scene;
  }
  // The part that was met, with some room, in whole bars of at least four pixels.
  const auto size = static_cast<std::ptrdiff_t>(counts.size());
  std::ptrdiff_t begin = first - counts.begin(), end = size;
  while (counts[static_cast<std::size_t>(end) - 1] == 0) --end;
  const std::ptrdiff_t room = std::max<std::ptrdiff_t>((end - begin) / 16, 4);
  begin = std::max<std::ptrdiff_t>(begin - room, 0);
  end = std::min(end + room, size);
  const Rect plot{1, line + 8, histogram.width - 2, histogram.height - 3 * line - 16};
  const auto most_bars = std::max<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(plot.w / 4), 1);
  const std::ptrdiff_t per_bar = (end - begin + most_bars - 1) / most_bars;
  end = std::min(begin + (end - begin + per_bar - 1) / per_bar * per_bar, size);
  const double bin = (histogram.high - histogram.low) / static_cast<double>(size);
  const double low = histogram.low + bin * static_cast<double>(begin),
               high = histogram.low + bin * static_cast<double>(end);
  const auto across = [&](double value) { return plot.x + plot.w * (value - low) / (high - low); };

  std::vector<std::uint64_t> bars;
  for (std::ptrdiff_t at = begin; at < end; at += per_bar)
    bars.push_back(
        std::accumulate(counts.begin() + at, counts.begin() + std::min(at + per_bar, end), std::uint64_t{0}));
  const auto highest = static_cast<double>(*std::ranges::max_element(bars));
  SceneSeries numbers{histogram.nouns + " from x on", {}, {}, {}};
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double from = low + bin * static_cast<double>(per_bar) * static_cast<double>(i),
                 to = std::min(from + bin * static_cast<double>(per_bar), high);
    numbers.x.push_back(from);
    numbers.y.push_back(static_cast<double>(bars[i]));
    numbers.labels.push_back(fmt::format("{} … {}", short_number(from), short_number(to)));
    if (bars[i] == 0) continue;
    const double tall = std::max(1.0, (plot.h - 4) * static_cast<double>(bars[i]) / highest);
    scene.add({Box{{across(from), plot.bottom() - tall, std::max(across(to) - across(from) - 1, 1.0), tall},
                   with_opacity(histogram.color, 0.85),
                   {0, 0, 0, 0},
                   0,
                   1},
               fmt::format("bar.{}", i),
               fmt::format("{} … {}: {} {}", short_number(from), short_number(to), bars[i],
                           said(bars[i] == 1 ? histogram.noun : histogram.nouns))});
  }
  scene.series.push_back(std::move(numbers));
  SceneSeries deciles{"deciles", {}, histogram.deciles, {}};
  for (std::size_t i = 0; i < histogram.deciles.size(); ++i) deciles.x.push_back(static_cast<double>(i + 1));
  if (!deciles.y.empty()) scene.series.push_back(std::move(deciles));
  if (std::isfinite(histogram.mean)) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    scene.series.push_back({"mean and spread", {none, none}, {histogram.mean, histogram.spread}, {"mean", "spread"}});
  }
  scene.add({Line{{{plot.x, plot.bottom()}, {plot.right(), plot.bottom()}}, theme.line, 1}, "", ""});
  double taken = -1e9;
  for (const Tick& tick : ticks(ColorNorm{Scale::linear, low, high}, std::max(2, static_cast<int>(plot.w / 80)))) {
    const double at = across(tick.value), half = style.measure.width(tick.text, number) / 2;
    const double middle = std::clamp(at, half, histogram.width - half);
    if (middle - half < taken + 6) continue;
    taken = middle + half;
    scene.add({Text{{middle, plot.bottom() + line}, tick.text, number, theme.faint, Anchor::middle, 0}, "", ""});
  }
  for (std::size_t i = 0; i < histogram.deciles.size(); ++i) {
    const bool median = i == 4;
    const double at = across(histogram.deciles[i]);
    scene.add({Line{{{at, plot.bottom() - (median ? plot.h : 7)}, {at, plot.bottom() + 3}},
                    median ? theme.text : theme.muted,
                    median ? 1.5 : 1.0},
               fmt::format("decile.{}", i + 1), say("decile {}: {}", i + 1, short_number(histogram.deciles[i], 4))});
  }
  const auto above = [&](double value, const std::string& text, Color color, double y) {
    const double half = style.measure.width(text, font) / 2;
    const double at = across(value);
    if (at < plot.x || at > plot.right()) return;
    scene.add({Text{{std::clamp(at, half, histogram.width - half), y}, text, font, color, Anchor::middle, 0}, "", ""});
  };
  if (std::isfinite(histogram.mean)) {
    const double at = across(histogram.mean), y = plot.bottom() + 3;
    scene.add({Line{{{at - 4, y + 5}, {at, y}, {at + 4, y + 5}}, theme.accent, 1.75}, "mean",
               say("mean {} ± {}", short_number(histogram.mean, 4), short_number(histogram.spread))});
  }
  if (histogram.chance && *histogram.chance >= low && *histogram.chance <= high) {
    const double at = across(*histogram.chance);
    for (double y = plot.y; y < plot.bottom(); y += 7)
      scene.add({Line{{{at, y}, {at, std::min(y + 4, plot.bottom())}}, theme.faint, 1}, "", ""});
    above(*histogram.chance, said("chance"), theme.faint, plot.y + line - 4);
  }
  std::string caption;
  if (histogram.deciles.size() == 9)
    caption =
        say("mean {} ± {}   ·   deciles {} | {} | {}", short_number(histogram.mean), short_number(histogram.spread),
            short_number(histogram.deciles[0]), short_number(histogram.deciles[4]), short_number(histogram.deciles[8]));
  scene.add({Text{{0, histogram.height - 4},
                  elided(caption, font, histogram.width, style.measure),
                  font,
                  theme.muted,
                  Anchor::start,
                  0},
             "caption", ""});
  return scene;
}

}  // namespace headscope
