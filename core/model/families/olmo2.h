#pragma once
// What OLMo 3 shares with OLMo 2.

#include "core/model/families/usual.h"

namespace headscope {

/// All but positions, windows and ends.
void olmo2_like(ConfigMap& keys, ModelConfig& c);
WeightNames olmo2_names(const ModelConfig&);

}  // namespace headscope
