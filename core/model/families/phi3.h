#pragma once
// What Phi 3 and Phi 4 Multimodal share.

#include "core/model/families/usual.h"

namespace headscope {

void phi3_keys(ConfigMap& keys, ModelConfig& c);
WeightNames phi3_names(const ModelConfig&);

}  // namespace headscope
