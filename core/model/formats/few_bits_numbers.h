#pragma once
// Whole numbers with a scale for each group of them, as a tensor: in blocks that are multiplied as they are stored,
// where these say the same to the bit, since float32 numbers would take four to eight times the room; else as float32.

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

/// Element (i, k) stands for scale · (numbers(i, k) − zero), or, with a bias, scale · numbers(i, k) + bias.
struct FewBitsNumbers {
  Tensor numbers;                        ///< (out, in), whole, of magnitudes below 2¹⁰
  Tensor scale;                          ///< (out, group)
  Tensor zero;                           ///< likewise; whole numbers; may be undefined
  Tensor bias;                           ///< likewise; may be undefined
  std::vector<std::int32_t> group = {};  ///< of each input; empty: as many after one another as each takes
};
/// (out, in), maybe a view.
Tensor tensor_of(const FewBitsNumbers& of);

}  // namespace headscope
