#pragma once
// Products of few rows, where reading the weights is what takes time, with what stands around them in a block: the norm
// of what is multiplied, and what is added to the product or made of it. One kernel for all of it. Private to
// core/cuda.

#include "core/cuda/kernels.h"

namespace headscope::cuda {

inline constexpr Index few_rows = 4;

struct RowsProduct {
  const float* x = nullptr;  ///< (rows, in), rows `row_stride` apart
  Index row_stride = 0, rows = 0, in = 0;
  // Where `gain` is given the norm of x is multiplied, and written to `normed` (rows, in); no `shift`: RMSNorm.
  const float *gain = nullptr, *shift = nullptr;
  float epsilon = 0;
  float* normed = nullptr;

  /// (in, columns) of float, or of bfloat16 where `half`; rows `w_stride` apart, a multiple of 16 bytes, as is w.
  const void* w = nullptr;
  bool half = false;
  Index columns = 0, w_stride = 0;
  const float* bias = nullptr;  ///< may be null
  float* out = nullptr;         ///< x w + bias

  // Both may be null, arrays (rows, columns) without gaps.
  const float* more = nullptr;  ///< sum = out + more
  float* sum = nullptr;
  Curve curve = Curve::relu;  ///< curved = curve(out)
  float* curved = nullptr;
};

/// Whether the norm of so many rows can go along: they have to stay on chip.
bool norm_goes_along(Index rows, Index in);
/// `early`: the card can start a kernel while the one before still runs (compute capability 9.0); this one then fetches
/// its weights meanwhile.
void rows_product(const RowsProduct& task, bool early, cudaStream_t stream);

}  // namespace headscope::cuda
