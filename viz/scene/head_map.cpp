#include "viz/scene/head_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
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

void add_values(Scene& scene, const Heatmap& map, MapKind kind, const Look& look) {
  Font font = look.theme.number();
  const Rect first = map.cell(0, 0);
  const double room = first.w - map.gap - 6;
  const std::string widest = kind == MapKind::effective || kind == MapKind::difference ? "−.00" : ".00";
  while (font.size > 8 && look.measure.width(widest, font) > room) font.size -= 0.5;
  if (look.measure.width(widest, font) > room || first.h - map.gap < font.size + 4) return;
  for (Index r = 0; r < map.rows(); ++r)
    for (Index c = 0; c < map.columns(); ++c) {
      const float value = map.values.at(r, c);
      // Cells that round to zero stay quiet: their colour says it.
      if (map.is_masked(r, c) || !std::isfinite(value) || std::abs(value) < 0.005f) continue;
      const Rect cell = map.cell(r, c);
      const std::string text = cell_text(value);
      if (look.measure.width(text, font) > first.w - map.gap - 2) continue;
      scene.add({Text{{cell.x + (cell.w - map.gap) / 2, cell.y + (cell.h - map.gap) / 2 + half_capital(font)},
                      text,
                      font,
                      readable_on(map.color(r, c), look.theme.dark_ink, look.theme.light_ink),
                      Anchor::middle,
                      0},
                 fmt::format("value.{}.{}", r, c), ""});
    }
}

/// Query and key in their colours, in the corner that the slanted labels leave free.
void add_axis_titles(Scene& scene, double x, double y, const AxisPlan& side, const Look& look) {
  Font font = look.theme.caption();
  font.weight = 600;
  const double line = std::round(14 * look.theme.text_scale);
  // Beside small cells the first label reaches above the map.
  const double first = side.labels.empty() ? 0 : side.labels.front().center - 0.6 * side.font.size;
  const double baseline = y - 7 + std::min(0.0, first);
  scene.add({Text{{x - 7, baseline - line}, "key →", font, look.theme.key, Anchor::end, 0}, "axis.key", ""});
  scene.add({Text{{x - 7, baseline}, "query ↓", font, look.theme.query, Anchor::end, 0}, "axis.query", ""});
}

}  // namespace

CellSize cell_size(Index n_query, Index n_key, double plot) {
  constexpr double largest = 44, smallest_named = 12;  // the smallest cell beside which a label still fits
  const auto side = [&](Index n) {
    const double fit = std::floor(plot / static_cast<double>(std::max<Index>(n, 1)));
    // A map a little too long for named cells may grow by 40 % before its labels thin out.
    if (fit < smallest_named && static_cast<double>(n) * smallest_named <= 1.4 * plot) return smallest_named;
    return std::clamp(fit, 1.0, largest);
  };
  CellSize out;
  out.w = side(n_key);
  out.h = side(n_query);
  if (std::max(n_query, n_key) <= 3 * std::min(n_query, n_key))
    out.w = out.h = std::min(out.w, out.h);
  else
    out.w = std::min(out.w, 28.0), out.h = std::min(out.h, 28.0);
  out.max_cells = std::max<Index>(1, static_cast<Index>(1.25 * plot));
  return out;
}

Scene head_map_scene(const Trace& trace, const HeadMapOptions& options, const Look& look) {
  const Theme& theme = look.theme;
  const AttentionMap& map = map_of(trace, options.layer, options.head);
  const Index offset = map.place().offset;
  check(options.query, offset, map.n_query(), "query");
  check(options.key, 0, map.n_key(), "key");

  const double plot = std::clamp(options.plot, 64.0, 8192.0);
  CellSize size = cell_size(map.n_query(), map.n_key(), plot);
  const MapCells cells = map_cells(map, size.max_cells);
  if (cells.bin > 1) size = cell_size(cells.rows(), cells.columns(), plot);
  const Norm norm = norm_for(std::span(&cells, 1), map.place().kind, options.scaling);

  const AxisPlan side = plan_side_axis({trace, offset, map.n_query(), cells.bin, size.h, options.query}, look);
  const AxisPlan top = plan_top_axis({trace, 0, map.n_key(), cells.bin, size.w, options.key}, look);
  Font corner = theme.caption();
  corner.weight = 600;
  const double corner_width = std::max(look.measure.width("query ↓", corner), look.measure.width("key →", corner)) + 7;
  const double left = std::ceil(std::max(side.depth, corner_width));
  const double above = std::max(top.depth, std::round(28 * theme.text_scale) + 14);
  const double map_w = size.w * static_cast<double>(cells.columns()),
               map_h = size.h * static_cast<double>(cells.rows());
  const double width = std::max(left + map_w + top.overhang, narrowest * theme.text_scale);

  Scene scene;
  scene.background = theme.background;
  const double edge = options.bare ? slim_margin : margin;
  scene.width = width + 2 * edge;
  scene.title = fmt::format("{} layer {} head {}", trace.model.name, options.layer, options.head);
  double y = edge;
  if (!options.bare)
    y = add_header(scene,
                   {fmt::format("Layer {} · Head {}", options.layer, options.head), options.badge, describe_run(trace),
                    options.facts},
                   margin, margin, width, look);
  y = std::round(y + (options.bare ? 2 : 14) + above);
  const double x = std::round(edge + left);

  const std::string source = map_name(map) + (trace.source.empty() ? "" : " · " + trace.source);
  Heatmap drawn = heatmap_of(cells, {x, y, map_w, map_h}, norm, theme);
  drawn.first_row = offset;
  scene.add({drawn, "map", source});
  if (options.values && cells.bin == 1) add_values(scene, drawn, map.place().kind, look);
  add_axis_titles(scene, x, y, side, look);
  add_side_axis(scene, side, x, y, "query", theme.text, look);
  add_top_axis(scene, top, x, y, "key", theme.text, look);
  if (options.query) {
    const Index row = (*options.query - offset) / cells.bin;
    scene.add({Box{{x - 1, y + size.h * static_cast<double>(row) - 1, map_w + 2 - drawn.gap, size.h + 2 - drawn.gap},
                   {0, 0, 0, 0},
                   theme.accent,
                   1.5,
                   0},
               "highlight.query", ""});
    if (options.key) {
      const Rect cell = drawn.cell(row, *options.key / cells.bin);
      scene.add({Box{{cell.x - 1, cell.y - 1, cell.w + 2 - drawn.gap, cell.h + 2 - drawn.gap},
                     {0, 0, 0, 0},
                     theme.accent,
                     2.5,
                     0},
                 "highlight.cell", ""});
    }
  }
  y += map_h + 14;
  y = add_color_bar(scene,
                    {options.weights.empty() ? describe_weights(map.place().kind, norm.scale) : options.weights, norm,
                     drawn.colormap, cells.highest(), cells.any_masked(), cells.any_missing()},
                    edge, y, width, look);
  const std::string pooled = pooling_note(cells);
  scene.description = source + (pooled.empty() ? "" : " · " + pooled);
  if (!options.bare) y = add_caption(scene, scene.description, margin, y + 8, width, look);
  scene.height = std::ceil(y + edge);
  return scene;
}

}  // namespace headscope
