#pragma once
// All heads in the room of a side panel: bare thumbnails without titles, or one coloured tile per head when a metric is
// shown. Layers down, heads across; sorted or filtered, simply in the order given.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/trace/trace.h"
#include "viz/scene/head_grid.h"

namespace headscope {

struct HeadAtlasOptions {
  Scaling scaling;
  std::vector<HeadMark> classes;  ///< outlined; the legend names them
  double width = 320;             ///< logical pixels that the picture may take
  double largest_thumb = 72;      ///< side of one picture at most
  std::vector<int> order;         ///< indices into trace.maps, as they shall be shown; empty = all, layer by layer
  std::vector<double> values;     ///< one per map: tiles are coloured by it instead of by the map; NaN = missing
  std::string values_title;       ///< "entropy, nats"
  double values_low = 0, values_high = 1;
  std::vector<HeadId> taken_out;  ///< that an edit takes out: crossed through
  bool quiet_missing = false;     ///< NaN is nothing to worry about: in the neutral colour of masked cells
};

/// Marks are named "head.<layer>.<head>". Series: the values, labelled "layer.head". Throws Error when the trace has no
/// maps.
Scene head_atlas_scene(const Trace& trace, const HeadAtlasOptions& options, const Style& style);

}  // namespace headscope
