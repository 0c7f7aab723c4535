#pragma once
// What the card computes besides products (cuBLASLt) and attention (attention_kernels.h): the ops of Backend, number by
// number or row by row, by the formulas of core/tensor. All pointers are the card's, all arrays contiguous unless said;
// everything is queued on `stream`. Private to core/cuda.

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

namespace headscope::cuda {

using Index = std::int64_t;

void add(const float* a, const float* b, Index n, float* out, cudaStream_t stream);
void multiply(const float* a, const float* b, Index n, float* out, cudaStream_t stream);
void scale(const float* x, float factor, Index n, float* out, cudaStream_t stream);
void soft_cap(const float* x, float limit, Index n, float* out, cudaStream_t stream);
void clip(const float* x, float limit, Index n, float* out, cudaStream_t stream);
enum class Curve { relu, gelu, gelu_tanh, silu };
void activate(Curve f, const float* x, Index n, float* out, cudaStream_t stream);
struct XieluNumbers {
  float positive, negative, beta, epsilon;
};
void xielu(XieluNumbers f, const float* x, Index n, float* out, cudaStream_t stream);

/// Rows of `width`; row r takes part r mod `sets` of gain and bias. `bias` null: RMSNorm.
void norm(const float* x, const float* gain, const float* bias, Index rows, Index width, Index sets, float epsilon,
          float* out, cudaStream_t stream);
void solu(const float* x, Index rows, Index width, float* out, cudaStream_t stream);

/// x (row, head, width) with rows and heads so far apart.
struct Heads {
  const float* x;
  Index rows, heads, width, row_stride, head_stride;
};
void add_to_heads(Heads x, const float* shared, Index shared_stride, Index r, float* out, cudaStream_t stream);
void rotate(Heads x, const float* cosine, const float* sine, Index pairs, bool adjacent, float* out,
            cudaStream_t stream);
/// The same forwards (`sign` 1) or back (−1), into `out` with rows and heads so far apart; written or added.
void turn(Heads x, const float* cosine, const float* sine, Index pairs, bool adjacent, float sign, float* out,
          Index out_row, Index out_head, bool add, cudaStream_t stream);

/// Rows of table (…, width) → out (count, width).
void gather(const float* table, Index row_stride, Index width, const std::int32_t* ids, Index count, float* out,
            cudaStream_t stream);
/// Any strides → contiguous.
void copy(const float* x, const std::array<Index, 4>& extents, const std::array<Index, 4>& strides, Index n, float* out,
          cudaStream_t stream);
void to_bfloat(const float* x, Index rows, Index width, Index row_stride, void* out, cudaStream_t stream);
/// Of `count` arrays x the place of the first number that is not finite, in the upper 32 bits of its `found`, with its
/// bits in the lower ones; they have all bits set before, and stay so where there is none. REQUIRES n < 2³².
inline constexpr int most_looked = 16;
struct Looked {
  const float* x[most_looked];
  Index n[most_looked];
};
void first_not_finite(const Looked& looked, int count, unsigned long long* found, cudaStream_t stream);

}  // namespace headscope::cuda
