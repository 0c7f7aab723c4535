#pragma once
// All heads of a trace at once: layers down, heads across, one scale for all, so that brightness can be compared.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/trace/head_id.h"
#include "core/trace/trace.h"
#include "viz/scene/annotations.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"

namespace headscope {

/// A head that belongs to a class: outlined in the class's hue and named below its picture, so colour is never alone.
struct HeadMark {
  HeadId head = {};
  std::string title;  ///< "previous token"
  Color color;
};

struct HeadGridOptions {
  Scaling scaling;
  std::vector<HeadMark> classes;   ///< at most one per head is drawn, the first
  std::optional<HeadId> selected;  ///< in the accent colour
  double thumb = 0;  ///< largest side of one picture, logical pixels; 0 = 40 … 132, by the number of heads
};

/// Throws Error when the trace has no maps. Pictures come from AttentionMap::overview(), so a bright cell never
/// disappears.
Scene head_grid_scene(const Trace& trace, const HeadGridOptions& options, const Style& style);

}  // namespace headscope
