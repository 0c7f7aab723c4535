#pragma once
// Which architectures of llama.cpp are read, each as the family that it was made from: an entry of one table says how
// the family's keys and tensors are called in a file, and what the conversion did to them.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "core/io/gguf.h"
#include "core/model/formats/renamed_weights.h"

namespace headscope {

/// "#" is the layer, "*" an expert: in `gguf` of a tensor of one, else one after another in a tensor of all. A name
/// stands for its weight and its bias. Without a `family` the tensor goes with another one.
struct GgufTensorRule {
  std::string_view gguf, family;
  Turn turn = Turn::none;
  bool whole = false;  ///< the family's name has no ".weight" or ".bias" behind it
};
struct GgufKeyRule {
  std::string_view gguf, config;  ///< "block_count", without the architecture in front
};
struct GgufArchitecture {
  std::string_view name, model_type;
  std::vector<GgufKeyRule> keys;
  std::vector<GgufTensorRule> tensors;
  /// Truth values of config.json that say whether a tensor is there.
  std::vector<GgufKeyRule> flags = {};
  std::string_view share = {};  ///< of config.json: the part of a head that turns; empty = all of it does
  /// What else follows from the file.
  void (*more)(const GgufFile& file, nlohmann::json& config) = nullptr;
  bool latent = false;          ///< keys and values have widths of their own, which `more` knows
  std::string_view where = {};  ///< a tensor that only this form of the architecture has; empty = of any
};

/// In the order in which errors list them; of several forms of one name the first that fits counts.
std::span<const GgufArchitecture> gguf_architectures();

}  // namespace headscope
