#pragma once
// Products by the tensor cores, which read numbers cut to 10 bits behind the point. Where every bit shall count a
// number is the sum of two such, and three products give theirs but for the last bit or two of 24 (Ootomo & Yokota,
// Recovering single precision accuracy from Tensor Cores, 2022). Private to core/cuda.

namespace headscope::cuda {

__device__ inline unsigned int cut(float x) {
  unsigned int out;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
  return out;
}

template <bool exact>
struct Cut {
  unsigned int high, low = 0;
  __device__ explicit Cut(float x) : high(cut(x)) {
    if (exact) low = cut(x - __uint_as_float(high));
  }
};

/// sum (16 × 8) += a (16 × 8) · b (8 × 8), shared out over a warp as the instruction has it: with g = lane / 4 and
/// t = lane % 4, a: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4); b: (t, g), (t + 4, g); sum: (g, 2t), (g, 2t + 1),
/// (g + 8, 2t), (g + 8, 2t + 1).
__device__ inline void multiply_add(float sum[4], const unsigned int a[4], unsigned int b0, unsigned int b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

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
