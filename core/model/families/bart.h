#pragma once
// What Marian shares with BART.

#include "core/model/families/two_stacks.h"

namespace headscope {

void bart_like(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder);
WeightNames bart_names(const ModelConfig& stack);

}  // namespace headscope
