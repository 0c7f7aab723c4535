#pragma once
// One head, every weight: queries down, keys across.

#include <optional>
#include <string>

#include "core/trace/trace.h"
#include "viz/scene/furniture.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct HeadMapOptions {
  int layer = 0, head = 0;
  Scaling scaling;
  Badge badge;                                             ///< class of the head with its score
  std::vector<std::pair<std::string, std::string>> facts;  ///< metrics, ("Entropy", "0.94 nats")
  std::optional<Index> query, key;                         ///< highlighted row; with key: also that cell
  bool values = true;                                      ///< numbers inside cells, where they fit
  double plot = 640;    ///< side that the map aims at, logical pixels; long labels and titles come on top
  std::string weights;  ///< what the numbers are, at the colour bar; "" = attention weights, as the map's kind says
  bool bare = false;    ///< without title and caption, for a panel that says these itself
};

/// Throws Error when the trace has no such map or row, or the scale does not suit the weights.
Scene head_map_scene(const Trace& trace, const HeadMapOptions& options, const Look& look);

/// Cell sizes for n_query × n_key cells on a plot of about `plot` pixels: whole pixels, square unless the map is long
/// and thin.
struct CellSize {
  double w = 1, h = 1;
  Index max_cells = 0;  ///< longest side that is drawn exactly; beyond, the map is pooled
};
CellSize cell_size(Index n_query, Index n_key, double plot);

}  // namespace headscope
