#pragma once
// What both kinds of Gemma 4 share.

#include <map>
#include <string>

#include "core/model/families/usual.h"

namespace headscope {

void gemma4_text_keys(ConfigMap& keys, ModelConfig& c);
/// Without inputs of every layer's own and without experts.
void gemma4_unified_text_keys(ConfigMap& keys, ModelConfig& c);
WeightNames gemma4_names(const ModelConfig&);

/// What files of the halves leave out; they differ in the context.
inline std::map<std::string, double> gemma4_usual(int context) {
  return {{"vocab_size", 262144},      {"hidden_size", 2304},
          {"intermediate_size", 9216}, {"num_hidden_layers", 30},
          {"num_attention_heads", 8},  {"num_key_value_heads", 4},
          {"head_dim", 256},           {"max_position_embeddings", context}};
}

}  // namespace headscope
