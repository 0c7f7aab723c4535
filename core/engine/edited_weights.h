#pragma once
// The weights of a model as a pass with edits multiplies by them, for those who take its results apart afterwards.

#include <optional>
#include <vector>

#include "core/engine/intervention.h"
#include "core/model/model.h"

namespace headscope {

/// What each head writes with: W_O as the edits "singular o" of this run leave it, all else as it is in the model. Of a
/// text of `tokens`; edits of some positions alone count where they reach `position`, and nowhere when none is named.
/// Throws Error as the run does.
ModelWeights weights_written_with(const Model& model, const std::vector<Intervention>& edits, int tokens,
                                  std::optional<int> position = {});

}  // namespace headscope
