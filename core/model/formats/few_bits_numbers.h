#pragma once
// Numbers of few bits as a tensor: in GGUF's blocks, which are multiplied as they are stored (core/tensor/stored.h),
// where these say the same to the bit, since float32 numbers take seven times the room; else as float32.

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

/// Element (i, k) stands for scale · (numbers(i, k) − zero), or, with a bias, scale · numbers(i, k) + bias.
struct FewBitsNumbers {
  Tensor numbers;                        ///< (out, in), float32, whole
  int least = 0, most = 0;               ///< between which they lie
  Tensor scale;                          ///< (out, group)
  Tensor zero;                           ///< likewise, whole numbers; may be undefined
  Tensor bias;                           ///< likewise; may be undefined
  std::vector<std::int32_t> group = {};  ///< of each input; empty: as many after one another as each takes
};
/// (out, in)
Tensor tensor_of(const FewBitsNumbers& of);

/// Of such a shape, whose rows are whole groups of 32: each 16 bytes of `pairs` of E2M1, the first in the low half,
/// times 2^(exponent − 127). REQUIRES exponents below 255.
Tensor mxfp4_of(const Shape& shape, const std::uint8_t* pairs, const std::uint8_t* exponents);

}  // namespace headscope
