#pragma once
// Numbers of few bits, by symmetric absmax rounding (Dettmers et al., LLM.int8(): 8-bit Matrix Multiplication for
// Transformers at Scale, 2022, § 2.1): with b bits whole numbers from −(2^(b−1) − 1) to 2^(b−1) − 1 times a step,
//   step = max |x| ÷ (2^(b−1) − 1),   x̂ = step · round(x ÷ step),
// one step for a whole tensor, or vector-wise: one for each row of what is multiplied and each column of the weights.
// One large number makes the step of all that share it large. Input dimensions in which some row reaches `apart` are
// therefore multiplied unrounded, and take no part in the steps (the paper's mixed-precision decomposition; 6.0 there).
// Products of whole numbers are exact, so rounding both factors and multiplying in float32 gives what int8 would.

#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

struct Quantization {
  int bits = 8;             ///< 2 … 8
  bool activations = true;  ///< false: weights alone
  bool vectors = true;      ///< false: one step for each tensor
  double apart = 0;         ///< 0 = nothing is kept apart
  bool operator==(const Quantization&) const = default;
};

/// x (rows, in) and w (in, out) as they are multiplied.
struct QuantizedFactors {
  Tensor x, w;
  std::vector<Index> apart;  ///< the input dimensions that were left as they are
};
/// REQUIRES finite numbers, 2 ≤ bits ≤ 16.
QuantizedFactors quantized_factors(const Tensor& x, const Tensor& w, const Quantization& how);

}  // namespace headscope
