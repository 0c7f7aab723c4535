#pragma once
// What a decoder is made of, as data. A family file (gpt2.cpp, llama.cpp) turns a Hugging Face config.json into this
// and says where each weight is stored; the forward pass (model.cpp) reads only this, never a family's name.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/rotary.h"
#include "core/trace/trace.h"

namespace headscope {

enum class NormKind { layer_norm, rms_norm };
enum class PositionKind { none, learned, rotary };
enum class Activation { relu, gelu, gelu_tanh, silu };

struct ModelConfig {
  std::string name, family;  ///< folder name; "gpt2" or "llama"
  ModelDims dims;            ///< layers, heads, kv_heads, d_head, d_model, d_mlp, vocab
  int context = 0;
  NormKind norm = NormKind::layer_norm;
  double norm_epsilon = 1e-5;
  PositionKind position = PositionKind::learned;
  RotaryConfig rotary;
  Activation activation = Activation::gelu_tanh;
  bool gated_mlp = false;
  bool attention_bias = true, mlp_bias = true;  ///< whether the projections have biases
  bool tied_embeddings = true;
  bool scale_by_inverse_sqrt_d = true;  ///< scores ÷ √d_head
  bool scale_by_inverse_layer = false;  ///< scores ÷ (layer + 1), a GPT-2 training option
  std::optional<std::int32_t> bos, eos;
};

/// Reads folder/config.json. Throws Error naming the key on anything missing, absurd (zero, negative, above sane
/// limits, heads that do not divide) or not supported (another architecture, another rope_scaling).
ModelConfig load_config(const std::filesystem::path& folder);

}  // namespace headscope
