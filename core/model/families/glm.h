#pragma once
// What the generations of GLM-4 share.

#include "core/model/families/usual.h"

namespace headscope {

/// `usual_head`: the width of a head where the file says none; 0: that of the model ÷ heads.
void glm_like(ConfigMap& keys, ModelConfig& c, int usual_head);
void glm_keys(ConfigMap& keys, ModelConfig& c);
WeightNames glm_names(const ModelConfig&);

WeightNames glm4_names(const ModelConfig& c);

}  // namespace headscope
