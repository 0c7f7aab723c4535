#pragma once
// What Qwen3-Next and the families of Qwen3.5 share.

#include "core/model/families/hybrid.h"

namespace headscope {

/// All but experts and ends: norms whose gains are added to 1, queries and keys normalised head by head, a gate on what
/// heads put out, a quarter of every head rotated; most layers keep a state by the gated delta rule.
/// `mlp`: the key of d_mlp, empty where no layer has one MLP for all tokens. `kv_heads`: where the file leaves them
/// out.
void qwen3_5_like(ConfigMap& keys, ModelConfig& c, int kv_heads, const std::string& mlp = "intermediate_size");
void qwen3_5_keys(ConfigMap& keys, ModelConfig& c);
WeightNames qwen3_5_names(const ModelConfig&);
/// Of the families with experts.
void qwen3_5_moe_keys(ConfigMap& keys, ModelConfig& c);
WeightNames qwen3_5_moe_names(const ModelConfig& c);

}  // namespace headscope
