#include "viz/scene/head_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/base/words.h"
#include "viz/scene/kind_norms.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

struct Thumb {
  const AttentionMap* map = nullptr;
  MapCells cells;
  double w = 0, h = 0;
};

/// Whole pixels for every cell, so thumbnails are as crisp as large maps.
Thumb thumb_of(const AttentionMap& map, double side) {
  Thumb out{&map, overview_cells(map, static_cast<Index>(side)), 0, 0};
  const double longest = static_cast<double>(std::max<Index>(1, std::max(out.cells.rows(), out.cells.columns())));
  const double pixel = std::max(1.0, std::floor(side / longest));
  out.w = pixel * static_cast<double>(out.cells.columns());
  out.h = pixel * static_cast<double>(out.cells.rows());
  return out;
}

/// As much of a class's name as fits below a picture: all of it, its first word, or that cut short.
std::string short_title(const std::string& title, const Font& font, double width, const Style& style) {
  const std::string all = printable(title);
  if (style.measure.width(all, font) <= width) return all;
  return elided(all.substr(0, all.find(' ')), font, width, style.measure);
}

/// Few heads get large pictures, many small ones.
double thumb_side(double asked, int rows, int heads) {
  if (asked > 0) return std::clamp(std::round(asked), 16.0, 512.0);
  return std::min(std::clamp(std::floor(640.0 / heads), 56.0, 132.0),
                  std::clamp(std::floor(960.0 / rows), 40.0, 132.0));
}

/// Classes in the order in which they first appear, with how many heads each has.
struct LegendEntry {
  std::string title;
  Color color;
  int heads = 0;
};
std::vector<LegendEntry> legend_of(const std::map<HeadId, const HeadMark*>& marks) {
  std::vector<LegendEntry> out;
  for (const auto& [place, mark] : marks) {
    const auto known =
        std::find_if(out.begin(), out.end(), [&](const LegendEntry& e) { return e.title == mark->title; });
    if (known == out.end())
      out.push_back({mark->title, mark->color, 1});
    else
      ++known->heads;
  }
  return out;
}

double add_legend(Scene& scene, const std::vector<LegendEntry>& entries, double x, double y, double width,
                  const Style& style) {
  const Theme& theme = style.theme;
  const Font font = theme.caption();
  const double line = std::round(17 * theme.text_scale), swatch = 10;
  double at = x;
  int index = 0;
  for (const LegendEntry& entry : entries) {
    const std::string text =
        fmt::format("{} · {} {}", printable(entry.title), entry.heads, entry.heads == 1 ? said("head") : said("heads"));
    const double room = swatch + 6 + style.measure.width(text, font);
    if (at > x && at + room > x + width) at = x, y += line;
    const double middle = y + line / 2;
    scene.add(
        {Box{{at + 0.75, middle - swatch / 2 + 0.75, swatch - 1.5, swatch - 1.5}, {0, 0, 0, 0}, entry.color, 1.5, 0},
         "", ""});
    scene.add({Text{{at + swatch + 6, middle + half_capital(font)}, text, font, theme.muted, Anchor::start, 0},
               fmt::format("legend.class.{}", index++), ""});
    at += room + 18;
  }
  return y + line;
}

}  // namespace

Scene head_grid_scene(const Trace& trace, const HeadGridOptions& options, const Style& style) {
  const Theme& theme = style.theme;
  if (trace.maps.empty())
    throw Error("picture", "a trace with attention maps", "none", "run it again with maps recorded");
  std::map<int, int> row_of_layer, heads_of_layer;  // recorded layers may have holes
  int heads = 0, fewest = std::numeric_limits<int>::max();
  for (const AttentionMap& map : trace.maps) {
    row_of_layer.emplace(map.layer(), 0);
    int& own = heads_of_layer[map.layer()];
    own = std::max(own, map.head() + 1);
  }
  for (const auto& [layer, own] : heads_of_layer) heads = std::max(heads, own), fewest = std::min(fewest, own);
  int rows = 0;
  for (auto& [layer, row] : row_of_layer) row = rows++;
  std::vector<Thumb> thumbs;
  for (const AttentionMap& map : trace.maps) thumbs.push_back(thumb_of(map, thumb_side(options.thumb, rows, heads)));
  std::map<HeadId, const HeadMark*> marks;
  for (const HeadMark& mark : options.classes)
    if (row_of_layer.contains(mark.head.layer) && mark.head.head < heads) marks.emplace(mark.head, &mark);

  // One scale for all: collected without copying a value.
  std::vector<MapCells> all;
  double w = 0, h = 0;
  for (const Thumb& thumb : thumbs) {
    all.push_back(thumb.cells);
    w = std::max(w, thumb.w);
    h = std::max(h, thumb.h);
  }
  std::vector<const AttentionMap*> shown;
  for (const Thumb& thumb : thumbs) shown.push_back(thumb.map);
  const auto norms = layer_norms(trace, shown, all, options.scaling);

  const Font number = theme.number(), small{FontRole::ui, 8.5 * theme.text_scale, 500};
  Font axis = theme.caption();
  axis.weight = 600;
  const double between = 10, label_room = marks.empty() ? 0 : std::round(12 * theme.text_scale);
  const double pitch_x = w + between, pitch_y = h + between + label_room;
  const double left = std::ceil(std::max(style.measure.width(std::to_string(row_of_layer.rbegin()->first), number) + 10,
                                         style.measure.width(said("layer ↓"), axis) + 10));
  const double width = std::max(left + heads * pitch_x - between, narrowest * theme.text_scale);

  Scene scene;
  scene.background = theme.background;
  scene.width = width + 2 * margin;
  scene.title = say("{}: all heads", trace.model.name);
  const std::string columns = fewest == heads ? std::to_string(heads) : fmt::format("{}–{}", fewest, heads);
  const std::string title = say("All heads · {} {} × {} {}", rows, rows == 1 ? said("layer") : said("layers"), columns,
                                heads == 1 ? said("head") : said("heads"));
  double y = add_header(scene, {title, {}, describe_run(trace), {}}, margin, margin, width, style);
  const double line = std::round(15 * theme.text_scale), x = std::round(margin + left);
  y = std::round(y + 14 + 2 * line + 6);
  scene.add({Text{{x, y - line - 10}, said("head →"), axis, theme.muted, Anchor::start, 0}, "axis.head", ""});
  scene.add({Text{{x - 10, y - 8}, said("layer ↓"), axis, theme.muted, Anchor::end, 0}, "axis.layer", ""});
  for (int head = 0; head < heads; ++head)
    scene.add({Text{{x + head * pitch_x + w / 2, y - 8}, std::to_string(head), number, theme.muted, Anchor::middle, 0},
               fmt::format("label.head.{}", head), ""});
  for (const auto& [layer, row] : row_of_layer)
    scene.add({Text{{x - 10, y + row * pitch_y + h / 2 + half_capital(number)},
                    std::to_string(layer),
                    number,
                    theme.muted,
                    Anchor::end,
                    0},
               fmt::format("label.layer.{}", layer), ""});

  for (const Thumb& thumb : thumbs) {
    const int layer = thumb.map->layer(), head = thumb.map->head();
    const Rect rect{x + head * pitch_x, y + row_of_layer[layer] * pitch_y, thumb.w, thumb.h};
    Heatmap drawn = heatmap_of(thumb.cells, rect, norms.at(attends(trace, *thumb.map)).norm, theme);
    drawn.gap = 0;
    scene.add({std::move(drawn), fmt::format("map.{}.{}", layer, head), map_name(trace, thumb.map->id())});
    const auto around = [&](double by, Color color, double stroke, const std::string& id) {
      scene.add(
          {Box{{rect.x - by, rect.y - by, rect.w + 2 * by, rect.h + 2 * by}, {0, 0, 0, 0}, color, stroke, 0}, id, ""});
    };
    if (const auto mark = marks.find({layer, head}); mark != marks.end()) {
      around(1.75, mark->second->color, 1.5, fmt::format("class.{}.{}", layer, head));
      const std::string label = short_title(mark->second->title, small, w + between - 4, style);
      scene.add({Text{{rect.x + rect.w / 2, rect.bottom() + label_room},
                      label,
                      small,
                      readable(mark->second->color, theme.background, theme),
                      Anchor::middle,
                      0},
                 fmt::format("class.label.{}.{}", layer, head), mark->second->title});
    } else {
      around(0.5, theme.line, 1, "");
    }
    if (options.selected == HeadId{layer, head}) around(3.75, theme.accent, 2, "selected");
  }
  y += rows * pitch_y - between + 18;
  for (const auto& [attending, own] : norms) {
    const std::string weights = describe_weights(own.kind, own.norm.scale);
    const Colormap* colors = is_signed(own.norm) ? theme.diverging : theme.sequential;
    y = add_color_bar(scene,
                      {norms.size() > 1 ? say("{}, one scale for all heads of that kind", weights)
                                        : say("{}, one scale for all heads", weights),
                       own.norm, colors, own.highest, own.masked, own.missing},
                      margin, y, width, style);
  }
  if (!marks.empty()) y = add_legend(scene, legend_of(marks), margin, y + 8, width, style);

  const AttentionMap& first = *thumbs.front().map;
  std::string caption = name(Site{SiteKind::pattern, first.layer()});
  if (rows > 1) caption += " … " + name(Site{SiteKind::pattern, row_of_layer.rbegin()->first});
  if (!trace.source.empty()) caption += " · " + trace.source;
  if (const std::string note = pooling_note(thumbs.front().cells); !note.empty()) caption += " · " + note;
  scene.description = caption;
  y = add_caption(scene, caption, margin, y + 8, width, style);
  scene.height = std::ceil(y + margin);
  return scene;
}

}  // namespace headscope
