#pragma once
// How a cheaper softmax over a vocabulary finds one word: the way through a binary tree with its code and branch
// probabilities, the clusters of an adaptive softmax, and what each costs. A pure function.

#include "core/attention/mechanism.h"
#include "viz/scene/token_axis.h"

namespace headscope {

/// Marks: nodes "node.<turn>", the leaf "leaf", branches that were not taken "other.<turn>", clusters "cluster.<i>",
/// costs "cost.<i>".
Scene code_path_scene(const MechanismPath& path, double width, const Style& style);

}  // namespace headscope
