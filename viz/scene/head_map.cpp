#include "viz/scene/head_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/cell_text.h"
#include "viz/scene/head_map_layout.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

void check(std::optional<Index> position, Index first, Index count, const char* what) {
  if (position && (*position < first || *position >= first + count))
    throw Error(std::string("highlighted ") + what, fmt::format("a position from {} to {}", first, first + count - 1),
                std::to_string(*position));
}

/// "0.87" as ".87", "−0.30" as "−.30": a cell has room for few signs.
std::string cell_text(float value) {
  const float size = std::abs(value);
  if (size >= 0.995f) return size < 1.05f ? (value < 0 ? "−1.0" : "1.0") : short_number(value, 2);
  return (value < 0 ? "−" : "") + fmt::format("{:.2f}", size).substr(1);
}

/// Query and key in their colours, in the corner that the slanted labels leave free.
void add_axis_titles(Scene& scene, double x, double y, const AxisPlan& side, const Style& style) {
  Font font = style.theme.caption();
  font.weight = 600;
  const double line = std::round(14 * style.theme.text_scale);
  // Beside small cells the first label reaches above the map.
  const double first = side.labels.empty() ? 0 : side.labels.front().center - 0.6 * side.font.size;
  const double baseline = y - 7 + std::min(0.0, first);
  scene.add({Text{{x - 7, baseline - line}, said("key →"), font, style.theme.key, Anchor::end, 0}, "axis.key", ""});
  scene.add({Text{{x - 7, baseline}, said("query ↓"), font, style.theme.query, Anchor::end, 0}, "axis.query", ""});
}

/// The whole map, small, and in it the part that is shown.
void add_minimap(Scene& scene, const AttentionMap& map, const MapRegion& region, const ColorNorm& norm, Point at,
                 double side, const Style& style) {
  const MapCells cells = overview_cells(map, static_cast<Index>(2 * side));
  const auto rows = static_cast<double>(map.n_query()), columns = static_cast<double>(map.n_key());
  const double step = side / std::max(rows, columns);
  const Rect rect{at.x, at.y, std::max(step * columns, 6.0), std::max(step * rows, 6.0)};
  Heatmap drawn = heatmap_of(cells, rect, norm, style.theme);
  drawn.gap = 0;
  drawn.first_row = map.place().offset;
  scene.add({std::move(drawn), "minimap", said("The whole map\nclick or drag to move the part that is shown"),
             Aside::minimap});
  scene.add({Box{{rect.x - 0.5, rect.y - 0.5, rect.w + 1, rect.h + 1}, {0, 0, 0, 0}, style.theme.line, 1, 0}, "", ""});
  const double w = rect.w / columns, h = rect.h / rows;
  scene.add({Box{{rect.x + w * static_cast<double>(region.key), rect.y + h * static_cast<double>(region.query),
                  w * static_cast<double>(region.n_key), h * static_cast<double>(region.n_query)},
                 {0, 0, 0, 0},
                 style.theme.accent,
                 1.5,
                 0},
             "minimap.frame", ""});
}

/// Rows scaled by their largest are scaled so in every part: by the largest of the whole row.
void keep_row_maxima(Heatmap& drawn, const AttentionMap& map, const MapRegion& region) {
  const std::vector<float>& largest = map.stats().max_weight;
  if (drawn.row_high.empty() || static_cast<Index>(largest.size()) != map.n_query()) return;
  std::ranges::fill(drawn.row_high, 0.f);
  for (Index q = 0; q < region.n_query; ++q) {
    float& high = nth(drawn.row_high, q / drawn.row_bin);
    high = std::max(high, nth(largest, region.query + q));
  }
}

}  // namespace

MapRegion shown_region(const std::optional<MapRegion>& region, const AttentionMap& map) {
  if (!region) return {0, map.n_query(), 0, map.n_key()};
  const auto fits = [](Index first, Index count, Index all) { return first >= 0 && count > 0 && first + count <= all; };
  if (!fits(region->query, region->n_query, map.n_query()) || !fits(region->key, region->n_key, map.n_key()))
    throw Error(
        "part of a map", fmt::format("rows and keys inside {} × {}", map.n_query(), map.n_key()),
        fmt::format("{} rows from {}, {} keys from {}", region->n_query, region->query, region->n_key, region->key));
  return *region;
}

void add_cell_values(Scene& scene, const Heatmap& map, MapKind kind, const std::string& id, const Style& style) {
  const Font font = style.theme.number();
  const Rect first = map.cell(0, 0);
  const std::string widest = kind == MapKind::effective || kind == MapKind::difference ? "−.00" : ".00";
  if (style.measure.width(widest, font) > first.w - map.gap - 3 || first.h - map.gap < font.size + 4) return;
  for (Index r = 0; r < map.rows(); ++r)
    for (Index c = 0; c < map.columns(); ++c) {
      const float value = map.values.at(r, c);
      if (map.is_masked(r, c) || !std::isfinite(value) || std::abs(value) < 0.005f) continue;
      const std::string text = cell_text(value);
      if (style.measure.width(text, font) > first.w - map.gap - 2) continue;
      add_cell_text(scene, map, {r, c}, text, font, style,
                    fmt::format("{}.{}.{}", id, map.first_row + r, map.first_column + c));
    }
}

Scene head_map_scene(const Trace& trace, const HeadMapOptions& options, const Style& style) {
  const Theme& theme = style.theme;
  const AttentionMap& map = map_of(trace, options.head);
  const Index offset = map.place().offset;
  check(options.query, offset, map.n_query(), "query");
  check(options.key, 0, map.n_key(), "key");
  const MapRegion wanted = shown_region(options.region, map);
  Font corner = theme.caption();
  corner.weight = 600;
  const double corner_width =
      std::max(style.measure.width(said("query ↓"), corner), style.measure.width(said("key →"), corner)) + 7;

  // What the colour bar will take: its height does not depend on the numbers.
  const auto bar_height = [&](double room) {
    Scene aside;
    return add_color_bar(aside, {"", {}, theme.sequential, 0, true, false}, 0, 0, room, style);
  };
  HeadMapAnnotations annotations{0, 0, std::ceil(0.6 * theme.token().size), corner_width};
  if (options.room) {
    annotations.bar_beside = bar_height(bar_column * theme.text_scale);
    annotations.bar_below = 14 + bar_height(std::min(narrowest * theme.text_scale, options.room->width));
  }
  const HeadMapLayout shape = head_map_layout(trace, map, wanted, options, annotations, style);
  const MapCells& cells = shape.cells;
  const MapRegion region{cells.query, cells.n_query, cells.key, cells.n_key};
  const CellSize size = shape.size;
  // Colours of a part are those of the whole: only their range may depend on numbers that lie elsewhere.
  const MapCells all = options.region ? overview_cells(map, stored_overview_cells) : MapCells{};
  const ColorNorm norm = norm_for(std::span(options.region ? &all : &cells, 1), map.place().kind, options.scaling);

  const double map_w = shape.width(), map_h = shape.height();
  const double edge = options.bare ? slim_margin : margin;
  double least = narrowest * theme.text_scale;
  if (options.room) least = std::min(least, options.room->width - 2 * edge);
  const double width = std::max(shape.left + map_w + shape.right(), least);

  Scene scene;
  scene.background = theme.background;
  scene.width = width + 2 * edge;
  scene.title = say("{} layer {} head {}", trace.model.name, options.head.layer, options.head.head);
  double y = edge;
  if (!options.bare)
    y = add_header(scene, {head_title(options.head), options.badge, describe_run(trace), options.facts}, margin, margin,
                   width, style);
  y = std::round(y + (options.bare ? 2 : 14) + shape.above);
  const double x = std::round(edge + shape.left);

  const std::string source = map_name(trace, map.id()) + (trace.source.empty() ? "" : " · " + trace.source);
  Heatmap drawn = heatmap_of(cells, {x, y, map_w, map_h}, norm, theme);
  drawn.first_row = offset + region.query;
  drawn.first_column = region.key;
  drawn.unfinished = cells.unfinished;
  if (options.region) keep_row_maxima(drawn, map, region);
  scene.add({drawn, "map", source});
  if (options.values && cells.bin == 1 && !cells.unfinished)
    add_cell_values(scene, drawn, map.place().kind, "value", style);
  add_axis_titles(scene, x, y, shape.side, style);
  add_side_axis(scene, shape.side, x, y, "query", theme.text, style);
  add_top_axis(scene, shape.top, x, y, "key", theme.text, style);
  if (options.region) add_minimap(scene, map, region, norm, {x + map_w + HeadMapLayout::gap, y}, shape.minimap, style);
  if (shape.side.marked) {
    const Index row = (*options.query - drawn.first_row) / cells.bin;
    scene.add({Box{{x - 1, y + size.h * static_cast<double>(row) - 1, map_w + 2 - drawn.gap, size.h + 2 - drawn.gap},
                   {0, 0, 0, 0},
                   theme.accent,
                   1.5,
                   0},
               "highlight.query", ""});
    if (shape.top.marked) {
      const Rect cell = drawn.cell(row, (*options.key - region.key) / cells.bin);
      scene.add({Box{{cell.x - 1, cell.y - 1, cell.w + 2 - drawn.gap, cell.h + 2 - drawn.gap},
                     {0, 0, 0, 0},
                     theme.accent,
                     2.5,
                     0},
                 "highlight.cell", ""});
    }
  }
  ColorBar bar{options.weights.empty() ? describe_weights(map.place().kind, norm.scale) : options.weights,
               norm,
               drawn.colormap,
               cells.highest(),
               cells.any_masked(),
               cells.any_missing()};
  if (shape.bar_beside) {
    // In a narrow column: what a probability is, the axis says.
    const std::string_view longer = said(" (probability)");
    if (const auto at = bar.label.find(longer); at != std::string::npos) bar.label.erase(at, longer.size());
    const double below_minimap = y + (shape.minimap > 0 ? shape.minimap + 46 : 0);
    const double top = std::max(y + map_h - annotations.bar_beside, below_minimap);
    y = std::max(y + map_h + annotations.below,
                 add_color_bar(scene, bar, x + map_w + HeadMapLayout::gap, top, shape.column, style));
  } else {
    y = add_color_bar(scene, bar, edge, y + map_h + 14, width, style);
  }
  std::string description = source;
  if (options.region)
    description += say(" · queries {} to {}, keys {} to {}", drawn.first_row, drawn.first_row + region.n_query - 1,
                       region.key, region.key + region.n_key - 1);
  const std::string pooled = pooling_note(cells);
  scene.description = description + (pooled.empty() ? "" : " · " + pooled);
  if (!options.bare) y = add_caption(scene, scene.description, margin, y + 8, width, style);
  scene.height = std::ceil(y + edge);
  return scene;
}

}  // namespace headscope
