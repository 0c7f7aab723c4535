#pragma once
// One head as threads from queries (left) to keys (right): how strong a thread is, is how much of the query's attention
// the key gets. After Vig, A Multiscale Visualization of Attention in the Transformer Model, 2019.

#include <optional>
#include <string>

#include "core/trace/head_id.h"
#include "core/trace/trace.h"
#include "viz/scene/annotations.h"
#include "viz/scene/scene.h"

namespace headscope {

struct ArcsOptions {
  HeadId head = {};
  double threshold = 0.05;     ///< threads below this |weight| are not drawn; the caption says so
  std::optional<Index> query;  ///< this row stands out, the others stay behind
  bool skip_first = false;     ///< leave out key 0, where sinks drown everything else; the caption says so
  Badge badge;
  std::vector<std::pair<std::string, std::string>> facts;
  Index most = 4000;  ///< of the strongest threads; the caption says when there were more
  /// Logical pixels to fill: tokens stand further apart and threads run longer where there is more; 0 = as on paper.
  double width = 0, height = 0;
  bool bare = false;  ///< without title and caption, for a panel that says these itself
  double most_width =
      8192;  ///< of the picture, logical pixels: labels are cut and threads stand closer before it shrinks
};

/// Series: the weights that are drawn, weakest first, labelled "query → key". Throws Error when the trace has no such
/// map or row, or the threshold is no number.
Scene arcs_scene(const Trace& trace, const ArcsOptions& options, const Style& style);

}  // namespace headscope
