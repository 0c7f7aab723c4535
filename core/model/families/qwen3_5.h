#pragma once
// What Qwen3-Next and the families of Qwen3.5 share.

#include "core/model/families/hybrid.h"

namespace headscope {

/// All but the MLP and ends: norms whose gains are added to 1, queries and keys normalised head by head, a gate on what
/// heads put out, a quarter of every head rotated; most layers keep a state by the gated delta rule.
void qwen3_5_like(ConfigMap& keys, ModelConfig& c);
void qwen3_5_keys(ConfigMap& keys, ModelConfig& c);
WeightNames qwen3_5_names(const ModelConfig&);

}  // namespace headscope
