#pragma once
// A heatmap's cells as rectangles, for printers of vectors: SVG and PDF. Internal to viz/export.

#include <vector>

#include "viz/export/raster.h"

namespace headscope {

/// A heatmap with more cells than this is drawn as an image of its cells; so are all when a scene's small ones have too
/// many together.
inline constexpr Index vector_cells_per_map = 4096, vector_cells_per_scene = 20000;

/// Which maps of a scene are drawn cell by cell.
class VectorCells {
 public:
  explicit VectorCells(const Scene& scene);
  bool drawn(const Heatmap& map) const { return all_ && map.rows() * map.columns() <= vector_cells_per_map; }

 private:
  bool all_ = true;
};

/// Neighbours of one colour where no gap parts them, else a cell by itself. Never a masked one.
struct CellRun {
  Index row = 0, begin = 0, end = 0;  ///< columns
  Rect rect;                          ///< without the gap
  Color color;
};
std::vector<CellRun> cell_runs(const Heatmap& map);
/// Masked cells with what lies between two of them: together one flat field.
std::vector<Rect> masked_field(const Heatmap& map);
/// The map as an image. Each cell is k × k pixels, so that a viewer that smooths images blurs only the last k-th of it.
Image cells_image(const Heatmap& map);

}  // namespace headscope
