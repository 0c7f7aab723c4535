#pragma once
// Rotary position embedding (Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021): pair i of
// a query or key at position p turns by p · θ_i, θ_i = base^(−2i/d). Half-split layout, as Hugging Face stores it: pair
// i is (x_i, x_{i + d/2}).

#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

struct RotaryConfig {
  double base = 10000;
  enum class Scaling { none, linear, llama3 } scaling = Scaling::none;
  double factor = 1;                                           ///< linear, llama3: how much longer than in training
  double low_frequency_factor = 1, high_frequency_factor = 4;  ///< llama3
  int original_context = 0;                                    ///< llama3: context in training
};

/// θ_i for i = 0 … d_head/2 − 1, in radians per token. `linear`: position interpolation (Chen et al., 2023), every θ ÷
/// factor. `llama3`: long wavelengths ÷ factor, short ones kept, smooth between (Dubey et al., The Llama 3 Herd of
/// Models, 2024).
std::vector<double> rotary_frequencies(const RotaryConfig& config, int d_head);

/// Cosines and sines of position · θ_i for positions [first, first + count): each (count, d_head/2).
struct RotaryTable {
  Tensor cosine, sine;
};
RotaryTable rotary_table(const std::vector<double>& frequencies, Index first, Index count);

}  // namespace headscope
