#pragma once
// A product with a large matrix by blocks that stay in a core's second-level cache. Private to core/tensor.

#include <algorithm>

#include "core/tensor/panels.h"

namespace headscope {

/// A block in panels: 256 × 128 floats (128 KB).
inline constexpr Index block_depth = 256, block_columns = 128;
// Rows that are multiplied with it before the next (24 × 256 floats, 24 KB) stay in the first-level cache; whole blocks
// of the kernel's 8 or 6.
inline constexpr Index strip_rows = 24;

/// out (rows of x, columns) gets, or where k > 0 is added, x's numbers [k, k + depth) of each row · `block` (depth,
/// columns), in panels; the first time with the bias (columns), which may be null. `ahead`: what is read next.
inline void multiply_block(const Tensor& x, Index k, Index depth, const float* block, Index columns, const float* bias,
                           float* out, Index out_stride, const panels::Ahead& ahead = {}) {
  const Index rows = x.dim(0), strips = (rows + strip_rows - 1) / strip_rows;
  for (Index strip = 0; strip < strips; ++strip) {
    const Index r = strip * strip_rows;
    float* const c = out + r * out_stride;
    const panels::Addend added = k > 0 ? panels::Addend{c, out_stride} : panels::Addend{bias};
    const Index from = ahead.count * strip / strips, to = ahead.count * (strip + 1) / strips;
    panels::multiply({x.data() + r * x.stride(0) + k, x.stride(0)}, std::min(strip_rows, rows - r), depth, block,
                     depth * panels::width(), columns, 1.0f, added, c, out_stride,
                     ahead.data ? panels::Ahead{ahead.data + from, to - from} : panels::Ahead{});
  }
}

}  // namespace headscope
