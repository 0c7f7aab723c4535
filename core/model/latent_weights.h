#pragma once
// Where decoders with latent keys and values keep the weights of attention (DeepSeek-AI, DeepSeek-V2, 2024): a product
// down to each latent, its norm, a product up to all heads.

#include <string>

#include "core/model/family.h"
#include "core/model/weight_reader.h"

namespace headscope {

struct LatentNames {
  std::string q_down = "self_attn.q_a_proj", q_norm = "self_attn.q_a_layernorm", q_up = "self_attn.q_b_proj";
  std::string q = "self_attn.q_proj";  ///< in place of those three, of queries made of the stream
  std::string kv_down = "self_attn.kv_a_proj_with_mqa", kv_norm = "self_attn.kv_a_layernorm",
              kv_up = "self_attn.kv_b_proj";
};

/// Reads queries, keys, values and latents of the block at `at`. Files have the dimensions of a head that turn last,
/// and keys and values of a head side by side; here those that turn come first (ModelConfig::latent()), so that the
/// matrices up to the heads are copies.
void read_latents(WeightReader& reader, const std::string& at, const LatentNames& names, const ModelConfig& config,
                  RawLayer& into);

}  // namespace headscope
