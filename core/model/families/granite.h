#pragma once
// What the families of Granite share.

#include "core/model/families/usual.h"

namespace headscope {

/// All but biases of the MLP, and experts.
void granite_stream(ConfigMap& keys, ModelConfig& c);
/// Granite MoE.
void granitemoe_keys(ConfigMap& keys, ModelConfig& c);
WeightNames granitemoe_names(const ModelConfig&);

}  // namespace headscope
