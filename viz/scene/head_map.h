#pragma once
// One head, every weight: queries down, keys across.

#include <functional>
#include <optional>
#include <string>

#include "core/trace/head_id.h"
#include "core/trace/trace.h"
#include "viz/scene/annotations.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct HeadMapOptions {
  HeadId head = {};
  Scaling scaling;
  Badge badge;                                             ///< class of the head with its score
  std::vector<std::pair<std::string, std::string>> facts;  ///< metrics, ("Entropy", "0.94 nats")
  std::optional<Index> query, key;                         ///< highlighted row; with key: also that cell
  bool values = true;                                      ///< numbers inside cells, where they fit
  double plot = 640;    ///< side that the map aims at, logical pixels; long labels and titles come on top
  std::string weights;  ///< what the numbers are, at the colour bar; "" = attention weights, as the map's kind says
  bool bare = false;    ///< without title and caption, for a panel that says these itself
  /// For a panel: the picture, labels included, is no larger than this. Cells take what is left and labels thin out;
  /// nothing is written smaller. Then `plot` is not read.
  struct Room {
    double width = 0, height = 0;
  };
  std::optional<Room> room = {};
  /// The part of the map that is shown, with the whole beside it, small, and in it a frame round this part: marks
  /// "minimap" and "minimap.frame".
  std::optional<MapRegion> region = {};
  /// Where the cells of the region come from, at most so many on a side, with bins of a MapPyramid; empty = they are
  /// computed for this picture, with the smallest bin that does.
  std::function<MapCells(const MapRegion& region, Index max_cells)> cells = {};
};

/// Throws Error when the trace has no such map or row, the scale does not suit the weights, or the region is not inside
/// the map. A query or key outside the region is not marked.
Scene head_map_scene(const Trace& trace, const HeadMapOptions& options, const Style& style);

/// The region, or the whole map. Throws Error when it is not inside the map, or empty.
MapRegion shown_region(const std::optional<MapRegion>& region, const AttentionMap& map);

/// Numbers inside the cells of a map, where the cells have room for them: marks "<id>.<row>.<column>", counted as the
/// map's labels are. Values that round to zero stay quiet: their colour says it.
void add_cell_values(Scene& scene, const Heatmap& map, MapKind kind, const std::string& id, const Style& style);

/// Cell sizes for n_query × n_key cells on a plot of about `plot` pixels: whole pixels, square unless the map is long
/// and thin.
struct CellSize {
  double w = 1, h = 1;
  Index max_cells = 0;  ///< longest side that is drawn exactly; beyond, the map is pooled
};
CellSize cell_size(Index n_query, Index n_key, double plot);

}  // namespace headscope
