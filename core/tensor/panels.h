#pragma once
// Small matrix products of our own, in the shape attention needs: a few rows times a matrix held in panels of as many
// columns as two registers hold. Used for q·kᵀ and pattern·v (so that causal blocks skip what is masked) and for weight
// matrices small enough to stay in cache, where a library call would cost more than the product.
// Instruction set chosen at run time (Highway). Thread rule: pure functions.

#include "core/tensor/ahead.h"
#include "core/tensor/tensor.h"

namespace headscope::panels {

/// Sums run in chunks of this depth, whose results are added up: a chain of n additions errs by up to n roundings,
/// chunks by chunk + n / chunk. A softmax magnifies what the residual stream has gathered; on trained models this
/// halves the largest error of an attention weight, and costs less than can be measured.
inline constexpr Index chunk = 32;
/// More columns than any processor's panel has.
inline constexpr Index widest = 64;
/// Columns of one panel on this processor: two registers' worth (32 with AVX-512, 16 with AVX2).
Index width();
/// `columns` rounded up to whole panels.
Index padded(Index columns);
/// Floats that pack() writes for a (depth, columns) matrix.
Index packed_size(Index depth, Index columns);

/// Writes a (depth, columns) matrix, any strides and kind of numbers, as [panel][depth][width()], zeros in the last
/// panel's unused columns.
void pack(const Tensor& matrix, float* out);

/// The left matrix of a product: element (r, k) lies at data + r · stride + k · step, so that a transposed matrix is
/// multiplied where it is.
struct Rows {
  const float* data;
  Index stride;
  Index step = 1;
};

/// What is added to a product: element (r, j) at data + r · stride + j. A bias has stride 0; with c's own data and
/// stride the product is added to what c holds. Null data adds nothing. `goes_on`: it is the sum of what lies before in
/// depth, whole chunks, and the product has the bits of one that was never cut; for two rows or more.
struct Addend {
  const float* data = nullptr;
  Index stride = 0;
  bool goes_on = false;
};

/// c (rows, columns) = scale · a (rows, depth) · B + addend.
/// `b` points at the first panel; consecutive panels are `panel_stride` floats apart (depth · width() when all of B is
/// used, more when a range of its depth is). `columns` need not be whole panels: nothing beyond is written.
void multiply(const Rows& a, Index rows, Index depth, const float* b, Index panel_stride, Index columns, float scale,
              const Addend& addend, float* c, Index c_stride, const Ahead& ahead = {});
/// The same, without an addend and to the same bits, of a B that lies in memory or a far cache: all rows are multiplied
/// with what fits a core's nearest cache while the next is asked for, so that B is read once and not once for every few
/// rows.
void multiply_streamed(const Rows& a, Index rows, Index depth, const float* b, Index panel_stride, Index columns,
                       float scale, float* c, Index c_stride);
/// multiply() for a left matrix of unit inner stride, and a bias (columns) that may be null.
inline void multiply(const float* a, Index a_stride, Index rows, Index depth, const float* b, Index panel_stride,
                     Index columns, float scale, const float* bias, float* c, Index c_stride) {
  multiply(Rows{a, a_stride}, rows, depth, b, panel_stride, columns, scale, Addend{bias}, c, c_stride);
}

/// c (columns) = a (depth) · B, one row times a matrix where it lies: row k of B begins at b + k · b_stride. The bits
/// of the product with its panels. REQUIRES whole panels of columns.
void multiply_in_place(const float* a, Index depth, const float* b, Index b_stride, Index columns, float* c);

}  // namespace headscope::panels
