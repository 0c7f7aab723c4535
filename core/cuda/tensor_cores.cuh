#pragma once
// Products by the tensor cores, which read float16: the 11 bits that TF32 has, at twice its speed and from half its
// room, and as many of its magnitudes as count, since every head's numbers are first scaled by a power of two
// (attention_operands.cu). Where every bit shall count a number is the sum of two such, and three products give theirs
// but for the last bit or two of 24 (Ootomo & Yokota, Recovering single precision accuracy from Tensor Cores, 2022).
// Private to core/cuda.

#include "core/cuda/instructions.cuh"

namespace headscope::cuda {

/// Two numbers side by side, as what they are rounded to and, where `exact`, what that lacks.
template <bool exact>
struct Pair {
  unsigned int high, low = 0;
  __device__ Pair(float a, float b) : high(pack_halves(a, b)) {
    if (exact) low = pack_halves(a - lower_half(high), b - upper_half(high));
  }
};

/// Registers of a product's left side (16 × 16), or of its right side for 16 columns.
template <bool exact>
struct Block {
  unsigned int high[4], low[exact ? 4 : 1];
};

/// Columns 8 `which` … of what `right` has.
template <bool exact>
__device__ inline void multiply_add(float sum[4], const Block<exact>& left, const Block<exact>& right, int which) {
  const int at = 2 * which;
  if (exact) {
    multiply_add_halves(sum, left.low, right.high[at], right.high[at + 1]);
    multiply_add_halves(sum, left.high, right.low[exact ? at : 0], right.low[exact ? at + 1 : 0]);
  }
  multiply_add_halves(sum, left.high, right.high[at], right.high[at + 1]);
}

}  // namespace headscope::cuda
