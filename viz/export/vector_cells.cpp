#include "viz/export/vector_cells.h"

#include <algorithm>
#include <cmath>

namespace headscope {

VectorCells::VectorCells(const Scene& scene) {
  Index small = 0;
  for (const Mark& mark : scene.marks)
    if (const auto* map = std::get_if<Heatmap>(&mark.shape))
      if (const Index n = map->rows() * map->columns(); n <= vector_cells_per_map) small += n;
  all_ = small <= vector_cells_per_scene;
}

std::vector<CellRun> cell_runs(const Heatmap& map) {
  std::vector<CellRun> runs;
  for (Index r = 0; r < map.rows(); ++r)
    for (Index c = 0; c < map.columns();) {
      if (map.is_masked(r, c)) {
        ++c;
        continue;
      }
      const Color color = map.color(r, c);
      Index end = c + 1;
      while (map.gap == 0 && end < map.columns() && !map.is_masked(r, end) && map.color(r, end) == color) ++end;
      const Rect first = map.cell(r, c), last = map.cell(r, end - 1);
      runs.push_back({r, c, end, {first.x, first.y, last.right() - first.x - map.gap, first.h - map.gap}, color});
      c = end;
    }
  return runs;
}

std::vector<Rect> masked_field(const Heatmap& map) {
  std::vector<Rect> field;
  const auto masked = [&](Index r, Index c) { return r < map.rows() && map.is_masked(r, c); };
  for (Index r = 0; r < map.rows(); ++r)
    for (Index c = 0; c < map.columns();) {
      if (!map.is_masked(r, c)) {
        ++c;
        continue;
      }
      Index end = c + 1;
      while (end < map.columns() && map.is_masked(r, end)) ++end;
      const Rect first = map.cell(r, c), last = map.cell(r, end - 1);
      field.push_back({first.x, first.y, last.right() - first.x - map.gap, first.h - map.gap});
      // The strip between this run and masked cells below belongs to the field.
      for (Index below = c; map.gap > 0 && below < end;) {
        if (!masked(r + 1, below)) {
          ++below;
          continue;
        }
        Index stop = below + 1;
        while (stop < end && masked(r + 1, stop)) ++stop;
        const Rect from = map.cell(r, below), to = map.cell(r, stop - 1);
        field.push_back({from.x, from.bottom() - map.gap, to.right() - from.x - map.gap, map.gap});
        below = stop;
      }
      c = end;
    }
  return field;
}

Image cells_image(const Heatmap& map) {
  const auto k = static_cast<double>(std::clamp<Index>(2048 / std::max(map.rows(), map.columns()), 1, 8));
  Heatmap flat = map;
  flat.gap = 0;
  Scene tile;
  tile.width = static_cast<double>(map.columns());
  tile.height = static_cast<double>(map.rows());
  tile.background = map.masked_color;
  flat.rect = {0, 0, tile.width, tile.height};
  tile.add({flat, "", ""});
  const double side = max_side_px / std::max(tile.width, tile.height);
  const double area = std::sqrt(static_cast<double>(max_pixels) / (tile.width * tile.height)) * 0.999;
  return rasterize(tile, std::min({k, side, area}));
}

}  // namespace headscope
