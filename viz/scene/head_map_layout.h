#pragma once
// The shape of a head's map before anything is drawn: how large its cells are, which of its rows and keys are named,
// and what stands beside it.

#include "core/trace/trace.h"
#include "viz/scene/head_map.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct HeadMapLayout {
  MapCells cells;
  CellSize size;
  AxisPlan side, top;
  double left = 0, above = 0;  ///< room of the labels
  double column = 0;           ///< width of what stands to the right of the map: small map, colour bar; 0 = nothing
  double minimap = 0;          ///< longer side of the small map; 0 = none
  bool bar_beside = false;     ///< the colour bar is in that column, else below the map

  static constexpr double gap = 16;  ///< between map and column
  double width() const { return size.w * static_cast<double>(cells.columns()); }
  double height() const { return size.h * static_cast<double>(cells.rows()); }
  double right() const { return std::max(top.overhang, column > 0 ? gap + column : 0.0); }
};

/// How many cells n tokens take, `bin` to a cell.
inline Index bins(Index n, Index bin) {
  return (n + bin - 1) / bin;
}

struct HeadMapAnnotations {
  double bar_beside = 0,
         bar_below = 0;  ///< height of the colour bar in a narrow column, and below the map with its gap
  double below = 0;      ///< what the last label reaches below a map with nothing under it
  double corner = 0;     ///< width of the axes' titles
};
inline constexpr double bar_column = 190;  ///< narrowest column that holds the colour bar, times text_scale

/// `region`: what is shown; options.region or the whole map. In a room the place of the map depends on the text alone:
/// nothing moves when another row is marked, and little when another part is shown.
HeadMapLayout head_map_layout(const Trace& trace, const AttentionMap& map, const MapRegion& region,
                              const HeadMapOptions& options, const HeadMapAnnotations& annotations, const Style& style);

}  // namespace headscope
