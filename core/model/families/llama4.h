#pragma once
// What Llama 4 and the half of it that reads text share.

#include "core/model/families/usual.h"

namespace headscope {

void llama4_text_keys(ConfigMap& keys, ModelConfig& c);
WeightNames llama4_names(const ModelConfig&);

}  // namespace headscope
