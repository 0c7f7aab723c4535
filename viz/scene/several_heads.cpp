#include "viz/scene/several_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/head_map.h"
#include "viz/scene/kind_norms.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

/// The list without repetitions: a head named twice is drawn once.
std::vector<ChosenHead> distinct(const std::vector<ChosenHead>& heads) {
  std::vector<ChosenHead> out;
  for (const ChosenHead& head : heads)
    if (std::none_of(out.begin(), out.end(), [&](const ChosenHead& o) { return o.head == head.head; }))
      out.push_back(head);
  return out;
}

int columns_for(int count, int wanted) {
  if (wanted > 0) return std::min(wanted, count);
  const int rows = (count + 3) / 4;
  return (count + rows - 1) / rows;
}

CellSize tile_cell(Index rows, Index columns, double plot) {
  CellSize size = cell_size(rows, columns, plot);
  // Beside one another, maps stay at the size asked for: their labels may thin out.
  const double longest = static_cast<double>(std::max(rows, columns));
  if (size.w == size.h) size.w = size.h = std::clamp(std::floor(plot / longest), 1.0, 28.0);
  return size;
}

}  // namespace

Scene several_heads_scene(const Trace& trace, const SeveralHeadsOptions& options, const Style& style) {
  const Theme& theme = style.theme;
  if (options.heads.empty()) throw Error("list of heads", "at least one head", "none");
  const double plot = std::clamp(options.plot, 48.0, 2048.0);

  const std::vector<ChosenHead> heads = distinct(options.heads);
  std::vector<const AttentionMap*> maps;
  std::vector<MapCells> cells;
  for (const ChosenHead& chosen : heads) {
    maps.push_back(&map_of(trace, chosen.head));
    cells.push_back(map_cells(*maps.back(), static_cast<Index>(plot)));
  }
  // Heads of one run have one shape; the first speaks for all.
  const AttentionMap& first = *maps.front();
  const MapCells& shape = cells.front();
  const auto norms = layer_norms(trace, maps, cells, options.scaling);
  const CellSize size = tile_cell(shape.rows(), shape.columns(), plot);
  const AxisPlan side =
      plan_side_axis({trace, first.place().offset, first.n_query(), shape.bin, size.h, {}, {}, true}, style);
  const AxisPlan top = plan_top_axis({trace, 0, first.n_key(), shape.bin, size.w, {}}, style);

  Font name_font = theme.body();
  name_font.weight = 600;
  const Font badge_font = theme.badge();
  const double map_w = size.w * static_cast<double>(shape.columns()),
               map_h = size.h * static_cast<double>(shape.rows());
  const double line = std::round(17 * theme.text_scale);
  double tile_w = map_w;
  bool two_lines = false;
  for (const ChosenHead& chosen : heads) {
    const double name = style.measure.width(head_title(chosen.head), name_font);
    tile_w = std::max(tile_w, name);
    if (chosen.badge.text.empty()) continue;
    const double badge = style.measure.width(printable(chosen.badge.text), badge_font);
    two_lines |= name + 10 + badge > map_w;
    tile_w = std::max(tile_w, std::min(badge, 220 * theme.text_scale));  // longer ones are elided
  }
  const int count = static_cast<int>(heads.size()), columns = columns_for(count, options.columns);
  const int rows = (count + columns - 1) / columns;
  const double pitch_x = std::ceil(tile_w + 28), pitch_y = map_h + 8 + line * (two_lines ? 2 : 1) + 20;
  const double tiles = side.depth + columns * pitch_x - 28 - (tile_w - map_w);
  const double width = std::max({tiles + top.overhang, tiles + tile_w - map_w, narrowest * theme.text_scale});

  Scene scene;
  scene.background = theme.background;
  scene.width = std::ceil(width) + 2 * margin;
  scene.title = say("{}: {} heads", trace.model.name, count);
  double y = add_header(
      scene, {fmt::format("{} {}", count, count == 1 ? said("head") : said("heads")), {}, describe_run(trace), {}},
      margin, margin, width, style);
  const double x = std::round(margin + side.depth);
  y = std::round(y + 14 + top.depth);

  for (int i = 0; i < count; ++i) {
    const ChosenHead& chosen = nth(heads, i);
    const int row = i / columns, column = i % columns;
    const Rect rect{x + column * pitch_x, y + row * pitch_y, map_w, map_h};
    scene.add({heatmap_of(nth(cells, i), rect, norms.at(attends(trace, *nth(maps, i))).norm, theme),
               "map." + to_string(chosen.head), map_name(trace, nth(maps, i)->id())});
    scene.add({Box{{rect.x - 0.5, rect.y - 0.5, rect.w + 1, rect.h + 1}, {0, 0, 0, 0}, theme.line, 1, 0}, "", ""});
    if (column == 0) add_side_axis(scene, side, rect.x, rect.y, fmt::format("query.row{}", row), theme.text, style);
    if (row == 0) add_top_axis(scene, top, rect.x, rect.y, fmt::format("key.column{}", column), theme.text, style);
    const std::string name = head_title(chosen.head);
    const double baseline = rect.bottom() + 8 + line - 5;
    scene.add({Text{{rect.x, baseline}, name, name_font, theme.text, Anchor::start, 0},
               "name." + to_string(chosen.head), ""});
    if (chosen.badge.text.empty()) continue;
    const Point at = two_lines ? Point{rect.x, baseline + line}
                               : Point{rect.x + style.measure.width(name, name_font) + 10, baseline};
    const std::string text = elided(printable(chosen.badge.text), badge_font, rect.x + tile_w - at.x, style.measure);
    scene.add({Text{at, text, badge_font, readable(chosen.badge.color, theme.background, theme), Anchor::start, 0},
               "badge." + to_string(chosen.head), ""});
  }
  y += rows * pitch_y - 6;
  for (const auto& [attending, own] : norms) {
    const std::string weights = describe_weights(own.kind, own.norm.scale);
    const Colormap* colors = is_signed(own.norm) ? theme.diverging : theme.sequential;
    y = add_color_bar(
        scene,
        {norms.size() > 1 ? say("{}, one scale for all of that kind", weights) : say("{}, one scale for all", weights),
         own.norm, colors, own.highest, own.masked, own.missing},
        margin, y, width, style);
  }
  std::string caption = said("queries down, keys across");
  if (!trace.source.empty()) caption += " · " + trace.source;
  if (const std::string note = pooling_note(shape); !note.empty()) caption += " · " + note;
  scene.description = caption;
  y = add_caption(scene, caption, margin, y + 8, width, style);
  scene.height = std::ceil(y + margin);
  return scene;
}

}  // namespace headscope
