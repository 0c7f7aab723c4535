#pragma once
// Pictures of what a state space makes of tokens (core/analysis/state_steps.h).

#include <memory>
#include <optional>
#include <vector>

#include "core/analysis/state_steps.h"
#include "core/base/named_values.h"
#include "viz/scene/matrix_scene.h"

namespace headscope {

enum class StepNumber { delta, kept, written };
inline constexpr NamedValue<StepNumber> step_number_names[] = {
    {"delta", StepNumber::delta}, {"kept", StepNumber::kept}, {"written", StepNumber::written}};

/// Layer × token, means over lanes, or of one layer lane × token.
Matrix step_matrix(const std::vector<StateSteps>& steps, std::optional<int> layer, StepNumber number,
                   std::shared_ptr<const Trace> trace);

}  // namespace headscope
