#pragma once
// Small matrix products of our own, in the shape attention needs: a few rows times a matrix held in panels of as many
// columns as two registers hold. Used for q·kᵀ and pattern·v (so that causal blocks skip what is masked) and for weight
// matrices small enough to stay in cache, where a library call would cost more than the product.
// Instruction set chosen at run time (Highway). Thread rule: pure functions.

#include "core/tensor/tensor.h"

namespace headscope::panels {

/// Columns of one panel on this processor: two registers' worth (32 with AVX-512, 16 with AVX2).
Index width();
/// `columns` rounded up to whole panels.
Index padded(Index columns);
/// Floats that pack() writes for a (depth, columns) matrix.
Index packed_size(Index depth, Index columns);

/// Writes a (depth, columns) matrix, any strides, as [panel][depth][width()], zeros in the last panel's unused columns.
void pack(const Tensor& matrix, float* out);

/// c (rows, columns) = scale · a (rows, depth) · B + bias.
/// `b` points at the first panel; consecutive panels are `panel_stride` floats apart (depth · width() when all of B is
/// used, more when a range of its depth is). `bias` may be null. `columns` need not be whole panels: nothing beyond is
/// written.
void multiply(const float* a, Index a_stride, Index rows, Index depth, const float* b, Index panel_stride,
              Index columns, float scale, const float* bias, float* c, Index c_stride);

}  // namespace headscope::panels
