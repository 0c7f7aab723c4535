#pragma once
// What CodeGen shares with GPT-J.

#include "core/model/families/usual.h"

namespace headscope {

void gptj_keys(ConfigMap& keys, ModelConfig& c);
WeightNames gptj_names(const ModelConfig& c);

}  // namespace headscope
