#include "viz/scene/key_sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
/// The text, or, where it is too wide, what stands before its mark.
std::string whole_or_before(const std::string& text, std::string_view mark, const Font& font, double width,
                            const TextMeasure& measure) {
  return elided(measure.width(text, font) <= width ? text : text.substr(0, text.find(mark)), font, width, measure);
}
}  // namespace

std::string share_words(double share) {
  constexpr std::pair<int, const char*> parts[] = {{1, "1×"}, {2, "½"}, {4, "¼"}, {8, "⅛"}};
  for (const auto& [part, words] : parts)
    if (std::abs(share * part - 1) < 1e-9) return words;
  const double part = std::round(1 / share);
  if (std::abs(share * part - 1) < 1e-9) return fmt::format("1⁄{:.0f}", part);
  return fmt::format("{:.{}f} %", 100 * share, share < 0.1 ? 1 : 0);
}

Scene key_sharing_scene(const SharingPicture& picture, const Style& style) {
  const Theme& theme = style.theme;
  Font title = theme.body();
  title.weight = 600;
  const Font caption = theme.caption();
  const double scale = theme.text_scale, gap = 26;
  Scene scene;
  scene.background = theme.background;
  scene.width = picture.width;
  scene.height = picture.height;
  scene.title = picture.title;
  const auto count = static_cast<double>(std::max<std::size_t>(picture.ways.size(), 1));
  const double each = (picture.width - gap * (count - 1)) / count;
  const double head = std::round(16 * scale), bar = 10, foot = std::round(18 * scale);
  scene.add({Text{{0, head - 4}, picture.title, caption, theme.faint, Anchor::start, 0}, "", ""});
  const double top = head + std::round(20 * scale), bottom = picture.height - foot - bar - 14;
  const double side = std::clamp((bottom - top) / 4, 8.0, 20.0);
  SceneSeries shares{"cache, of a key head for every head", {}, {}, {}};
  for (std::size_t w = 0; w < picture.ways.size(); ++w) {
    const SharingWay& way = picture.ways[w];
    const double left = (each + gap) * static_cast<double>(w);
    const std::string id = fmt::format("way.{}.", w);
    scene.add({Text{{left, top - 7},
                    whole_or_before(way.title, " key head", title, each, style.measure),
                    title,
                    way.marked ? theme.accent : theme.text,
                    Anchor::start,
                    0},
               id + "title", way.tooltip});
    const double pitch = each / std::max(way.heads, 1), box = std::max(1.0, std::min(side, pitch * 0.72));
    const auto query_x = [&](int head_of) { return left + pitch * (head_of + 0.5); };
    const double query_y = top, key_y = bottom - side;
    const int groups = std::max(way.key_heads, 1), in_group = std::max(way.heads / groups, 1);
    const auto key_x = [&](int group) { return (query_x(group * in_group) + query_x((group + 1) * in_group - 1)) / 2; };
    const bool latent = way.key_heads == 0;
    for (int i = 0; i < way.heads; ++i) {
      const int group = latent ? 0 : std::min(i / in_group, groups - 1);
      scene.add({Line{{{query_x(i), query_y + box}, {key_x(group), key_y}},
                      with_opacity(latent ? theme.accent : theme.key, 0.6),
                      std::min(1.25, pitch / 4)},
                 fmt::format("{}join.{}", id, i), ""});
    }
    for (int i = 0; i < way.heads; ++i)
      scene.add({Box{{query_x(i) - box / 2, query_y, box, box}, theme.query, {0, 0, 0, 0}, 0, std::min(3.0, box / 4)},
                 fmt::format("{}query.{}", id, i), say("query head {}", i)});
    if (latent) {
      const double wide = std::max(each * way.share, side);
      scene.add({Box{{key_x(0) - wide / 2, key_y, wide, side}, theme.accent, {0, 0, 0, 0}, 0, 3}, id + "latent",
                 way.tooltip});
    } else {
      for (int group = 0; group < groups; ++group)
        scene.add({Box{{key_x(group) - box / 2, key_y, box, side}, theme.key, {0, 0, 0, 0}, 0, std::min(3.0, box / 4)},
                   fmt::format("{}key.{}", id, group),
                   say("key head {}: query heads {}–{}", group, group * in_group, (group + 1) * in_group - 1)});
    }
    const double y = bottom + 12;
    scene.add({Box{{left, y, each, bar}, with_opacity(theme.line, 0.5), {0, 0, 0, 0}, 0, 2}, id + "whole", ""});
    scene.add({Box{{left, y, each * std::clamp(way.share, 0.0, 1.0), bar},
                   latent ? theme.accent : theme.key,
                   {0, 0, 0, 0},
                   0,
                   2},
               id + "cache", way.tooltip});
    const std::string words = share_words(way.share);
    scene.add(
        {Text{{left, y + bar + foot - 4}, words, title, theme.text, Anchor::start, 0}, id + "share", way.tooltip});
    const double after = style.measure.width(words, title) + 10;
    scene.add({Text{{left + after, y + bar + foot - 4},
                    whole_or_before(way.size, " per token", caption, each - after, style.measure),
                    caption,
                    theme.muted,
                    Anchor::start,
                    0},
               "", way.tooltip});
    shares.x.push_back(static_cast<double>(w));
    shares.y.push_back(way.share);
    shares.labels.push_back(way.title);
  }
  scene.series.push_back(std::move(shares));
  return scene;
}

}  // namespace headscope
