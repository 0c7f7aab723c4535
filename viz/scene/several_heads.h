#pragma once
// A chosen list of heads beside one another, on one scale, with the token labels they share: the figure of a paper.

#include <string>
#include <vector>

#include "core/trace/head_id.h"
#include "core/trace/trace.h"
#include "viz/scene/annotations.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"

namespace headscope {

struct ChosenHead {
  HeadId head = {};
  Badge badge;  ///< class with score
};

struct SeveralHeadsOptions {
  std::vector<ChosenHead> heads;  ///< one named twice is drawn once
  Scaling scaling;
  int columns = 0;    ///< 0 = at most 4, rows as even as can be
  double plot = 220;  ///< side that each map aims at, logical pixels
};

/// Throws Error when the list is empty or names a head the trace does not hold.
Scene several_heads_scene(const Trace& trace, const SeveralHeadsOptions& options, const Style& style);

}  // namespace headscope
