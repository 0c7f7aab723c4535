#pragma once
// Softmax over given scores with every step on the way: what all mechanisms share that only change the scores.

#include <string>

#include "core/attention/mechanism.h"

namespace headscope::mechanism {

/// mask → softmax → · V from `scores` (n, m) before the mask. `score_steps`: how these came about, inputs included.
MechanismResult softmax_of(const MechanismInput& in, Tensor scores, std::vector<MechanismStep> score_steps,
                           Detail detail);
/// Softmax attention as the model computes it: what every other mechanism is compared with.
MechanismResult softmax_reference(const MechanismInput& in);
/// "Q 24×32 → · Kᵀ → softmax 24×24 → · V → O 24×32".
std::vector<ShapeChip> softmax_chips(const MechanismShape& s, const std::string& score);

}  // namespace headscope::mechanism
