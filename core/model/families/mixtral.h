#pragma once
// What Mixtral and Phi-3.5-MoE call their experts.

#include "core/model/families/usual.h"

namespace headscope {

WeightNames mixtral_names(const ModelConfig& config);

}  // namespace headscope
