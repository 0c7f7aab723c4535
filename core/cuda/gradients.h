#pragma once
// The ways back of kernels.h and what only training needs, by the formulas of core/tensor/row_gradients.h. All pointers
// are the card's, all arrays contiguous unless said; everything is queued on `stream`. `add`: what is computed is added
// to what is there, else written. Sums run in one order always, so that a run repeats bit for bit. Private to
// core/cuda.

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "core/cuda/kernels.h"
#include "core/tensor/adamw_numbers.h"

namespace headscope::cuda {

/// n numbers of `from` to where these extents and strides say.
void spread(const float* from, const std::array<Index, 4>& extents, const std::array<Index, 4>& strides, Index n,
            bool add, float* to, cudaStream_t stream);
/// dx of x · factor
void scale_back(const float* dy, float factor, Index n, bool add, float* dx, cudaStream_t stream);
/// dx of x · other
void multiply_back(const float* dy, const float* other, Index n, bool add, float* dx, cudaStream_t stream);
void activate_back(Curve f, const float* x, const float* dy, Index n, bool add, float* dx, cudaStream_t stream);

/// Of norm(): `dx` may be null. `rows_of` (rows, 2) is where every row's mean and 1 ÷ deviation go, for what follows.
void norm_back(const float* x, const float* gain, bool centered, const float* dy, Index rows, Index width, Index sets,
               float epsilon, float* rows_of, bool add, float* dx, cudaStream_t stream);
/// Where a gradient goes; null = nobody asks.
struct Into {
  float* to = nullptr;
  bool add = false;
};
void norm_weights_back(const float* x, const float* rows_of, const float* dy, Index rows, Index width, Index sets,
                       Into gain, Into bias, cudaStream_t stream);
/// out (columns) = Σ rows of x, which are row_stride apart.
void column_sums(const float* x, Index row_stride, Index rows, Index columns, bool add, float* out,
                 cudaStream_t stream);

/// Rows of d (…, width) added to those of `table` that they came from: group g are rows order[begin[g]] …
/// order[begin[g + 1]] of d, which belong to row id[g].
struct Groups {
  const std::int32_t *order, *begin, *id;
  Index count;
};
void gather_back(const float* d, Groups groups, Index width, Index row_stride, float* table, cudaStream_t stream);

/// Of every row of logits (rows, vocab): the largest one and 1 ÷ Σ e^(x − largest) into `rows_of` (rows, 2), and −ln
/// softmax[target], 0 where the target is −1, into `nats`.
void cross_entropy(const float* logits, const std::int32_t* targets, Index rows, Index vocab, float* rows_of,
                   double* nats, cudaStream_t stream);
/// d · share · (softmax − 1 at the target), 0 in rows whose target is −1; d is one number.
void cross_entropy_back(const float* logits, const std::int32_t* targets, const float* rows_of, const float* d,
                        float share, Index rows, Index vocab, bool add, float* d_logits, cudaStream_t stream);

/// A part of a tensor that an optimiser moves, and of its gradient: no more than part_size numbers.
struct Part {
  const float* gradient;
  float *first, *second, *weight;
  float keep;  ///< in place of AdamWRow::keep
  int count;
};
inline constexpr int part_size = 8192;
/// Σ gradient² of every part; not finite where a square is not.
void sums_of_squares(const Part* parts, Index count, double* sums, cudaStream_t stream);
void adamw(const AdamWRow& row, const Part* parts, Index count, cudaStream_t stream);

}  // namespace headscope::cuda
