#pragma once
// Products by the tensor cores, which read numbers cut to 10 bits behind the point. Where every bit shall count a
// number is the sum of two such, and three products give theirs but for the last bit or two of 24 (Ootomo & Yokota,
// Recovering single precision accuracy from Tensor Cores, 2022). Private to core/cuda.

#include "core/cuda/instructions.cuh"

namespace headscope::cuda {

template <bool exact>
struct Cut {
  unsigned int high, low = 0;
  __device__ explicit Cut(float x) : high(cut(x)) {
    if (exact) low = cut(x - __uint_as_float(high));
  }
};

template <bool exact>
struct Left {
  unsigned int high[4], low[4];
  __device__ explicit Left(const float x[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Cut<exact> c(x[i]);
      high[i] = c.high;
      low[i] = c.low;
    }
  }
  __device__ void multiply_add(float sum[4], float b0, float b1) const {
    if (!exact) return cuda::multiply_add(sum, high, __float_as_uint(b0), __float_as_uint(b1));  // cut already
    const Cut<exact> c0(b0), c1(b1);
    cuda::multiply_add(sum, low, c0.high, c1.high);
    cuda::multiply_add(sum, high, c0.low, c1.low);
    cuda::multiply_add(sum, high, c0.high, c1.high);
  }
};

}  // namespace headscope::cuda
