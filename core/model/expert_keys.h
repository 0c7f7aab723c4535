#pragma once
// The keys of config.json that say which layers have experts, how many, and how wide. Beside config_map.h.

#include <optional>
#include <string>

#include "core/model/config_map.h"

namespace headscope {

struct ExpertKeys {
  std::string count = "num_experts";  ///< or as in `count_too`, where files have that in its place
  std::string count_too = "num_local_experts";
  std::string per_token = "num_experts_per_tok";
  std::string width = "moe_intermediate_size";  ///< empty: d_mlp
  int usual_count = 0, usual_per_token = 0;     ///< where a key is absent; 0: it must be there
  std::optional<int> usual_width = {};
};
/// Throws Error where a token would pass through more experts than there are.
void expert_keys(ConfigMap& keys, ModelConfig& c, const ExpertKeys& names);

/// mlp_only_layers, and decoder_sparse_step: every so manieth of the others has experts.
void sparse_layers(ConfigMap& keys, ModelConfig& c);

/// `key`: so many layers have one MLP for all tokens, those behind them experts.
void first_layers_dense(ConfigMap& keys, ModelConfig& c, const std::string& key, int usual);

/// mlp_layer_types, "dense" or "sparse" for every layer; where it is absent, first_layers_dense(first_k_dense_replace).
void listed_sparse_layers(ConfigMap& keys, ModelConfig& c, int usual_dense);

}  // namespace headscope
