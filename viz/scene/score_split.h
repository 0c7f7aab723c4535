#pragma once
// How one head comes to its weights: the steps from scores to pattern, and one score taken apart by dimension.

#include "core/trace/head_id.h"
#include "core/trace/trace.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

/// Scores (scale · q·k + bias) → mask → softmax, three maps side by side. `trace` must hold the head's map factored.
struct HeadStepsOptions {
  HeadId head = {};
  double width = 900;
};
Scene head_steps_scene(const Trace& trace, const HeadStepsOptions& options, const Style& style);

/// The score of one cell as a sum over the dimensions of the head (over rotary pairs with RoPE), largest part first;
/// and what distance adds to it where it meets queries and keys (DeBERTa).
struct ScoreSplitOptions {
  HeadId head = {};
  Index query = 0, key = 0;
  bool rotary = false;
  double width = 900, height = 220;
};
Scene score_split_scene(const Trace& trace, const ScoreSplitOptions& options, const Style& style);

/// scale · q_c · k_c for every dimension c (rotary: for every pair c, c + d/2): adds up to the score without bias.
std::vector<double> score_parts(const AttentionMap& map, Index query, Index key, bool rotary);

}  // namespace headscope
