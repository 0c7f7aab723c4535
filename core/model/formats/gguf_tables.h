#pragma once
// What the entries of several architectures share: keys, tensors, and what a file may say. Of gguf_architectures.cpp
// and gguf_expert_architectures.cpp.

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/model/formats/gguf_architectures.h"

namespace headscope::gguf_tables {

using nlohmann::json;
using Keys = std::vector<GgufKeyRule>;
using Tensors = std::vector<GgufTensorRule>;

template <class List>
List joined(List a, const List& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Keys usual_keys(std::string_view epsilon, std::string_view epsilon_key = "attention.layer_norm_rms_epsilon") {
  return {{"block_count", "num_hidden_layers"},
          {"context_length", "max_position_embeddings"},
          {"embedding_length", "hidden_size"},
          {"feed_forward_length", "intermediate_size"},
          {"attention.head_count", "num_attention_heads"},
          {"attention.head_count_kv", "num_key_value_heads"},
          {"attention.key_length", "head_dim"},
          {epsilon_key, epsilon},
          {"rope.freq_base", "rope_theta"}};
}
inline Keys layer_norm_keys(std::string_view epsilon) {
  return usual_keys(epsilon, "attention.layer_norm_epsilon");
}

/// As most families call them. `turn`: of the rows of queries and keys; `norm`: of the gains.
inline Tensors usual_tensors(Turn turn = Turn::none, Turn norm = Turn::none) {
  return {{"token_embd", "model.embed_tokens"},
          {"output_norm", "model.norm", norm},
          {"output", "lm_head"},
          {"blk.#.attn_norm", "model.layers.#.input_layernorm", norm},
          {"blk.#.attn_q", "model.layers.#.self_attn.q_proj", turn},
          {"blk.#.attn_k", "model.layers.#.self_attn.k_proj", turn == Turn::none ? turn : Turn::rotary_pairs_of_keys},
          {"blk.#.attn_v", "model.layers.#.self_attn.v_proj"},
          {"blk.#.attn_output", "model.layers.#.self_attn.o_proj"},
          {"blk.#.ffn_gate", "model.layers.#.mlp.gate_proj"},
          {"blk.#.ffn_up", "model.layers.#.mlp.up_proj"},
          {"blk.#.ffn_down", "model.layers.#.mlp.down_proj"}};
}
inline const GgufTensorRule second_norm{"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm"};
inline const Tensors qk_norms{{"blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm"},
                              {"blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm"}};
/// Gemma's norms, whose gains the conversion added 1 to.
inline const Tensors gemma2_norms{
    {"blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm", Turn::plus_one},
    {"blk.#.ffn_norm", "model.layers.#.pre_feedforward_layernorm", Turn::plus_one},
    {"blk.#.post_ffw_norm", "model.layers.#.post_feedforward_layernorm", Turn::plus_one}};
inline const Tensors norms_behind{{"blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm"},
                                  {"blk.#.post_ffw_norm", "model.layers.#.post_feedforward_layernorm"}};
inline const Keys attention_bias{{"blk.0.attn_q.bias", "attention_bias"}};
inline const Keys llama_biases{{"blk.0.attn_q.bias", "attention_bias"}, {"blk.0.ffn_up.bias", "mlp_bias"}};

inline Tensors with_second_norm(Tensors tensors) {
  tensors.push_back(second_norm);
  return tensors;
}
inline const Keys granite_numbers{{"attention.scale", "attention_multiplier"},
                                  {"embedding_scale", "embedding_multiplier"},
                                  {"residual_scale", "residual_multiplier"},
                                  {"logit_scale", "logits_scaling"}};

/// Throws Error unless `config` holds the number.
inline void expect(const GgufFile& file, const json& config, const char* key, std::int64_t expected, const char* why) {
  const auto found = config.find(key);
  if (found != config.end() && *found != json(expected))
    throw Error(file.path().string() + ": " + key, fmt::format("{}, {}", expected, why), found->dump());
}
inline std::int64_t whole(const json& config, const char* key) {
  const auto found = config.find(key);
  return found != config.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

/// Those whose layers have experts. The first is a form of "llama".
std::vector<GgufArchitecture> expert_architectures();

}  // namespace headscope::gguf_tables
