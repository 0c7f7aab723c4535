#pragma once
// What the generations of GLM-4 share.

#include "core/model/families/usual.h"

namespace headscope {

void glm_keys(ConfigMap& keys, ModelConfig& c);
WeightNames glm_names(const ModelConfig&);

}  // namespace headscope
