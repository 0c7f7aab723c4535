#pragma once
// What mT5 shares with T5.

#include "core/model/families/two_stacks.h"

namespace headscope {

/// Of one stack, everything but its MLP.
void t5_stack(ConfigMap& keys, ModelConfig& c);
/// `gated`, `tied`: the family's habit, where the file says nothing.
void t5_like(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder, const char* mlp, bool tied);
WeightNames t5_names(const ModelConfig& stack);

}  // namespace headscope
