#pragma once
// Where one query looks: its row of the map as bars over the keys.

#include <optional>
#include <string>

#include "core/trace/head_id.h"
#include "core/trace/trace.h"
#include "viz/scene/annotations.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"

namespace headscope {

struct RowBarsOptions {
  HeadId head = {};
  Index query = 0;  ///< position of the query
  Scaling scaling;  ///< linear: the axis ends at the next round number above the largest weight unless `high` says more
  Badge badge;
  double plot = 640;    ///< width that the bars aim at
  double height = 180;  ///< of the tallest bar
  /// For a panel: a picture of this size, labels included, without title, caption and margin; bars take what is left.
  struct Room {
    double width = 0, height = 0;
  };
  std::optional<Room> room = {};
};

/// Series: the weights over the keys. Throws Error when the trace has no such map or row, or the scale does not suit
/// the weights.
Scene row_bars_scene(const Trace& trace, const RowBarsOptions& options, const Style& style);

}  // namespace headscope
