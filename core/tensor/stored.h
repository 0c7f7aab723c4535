#pragma once
// Numbers as files keep them, read where they lie. Each is one float32: F16 and BF16 exactly, Q8_0 (GGUF: 32 whole
// numbers of 8 bits behind the F16 that multiplies them) as that one product, rounded to nearest. So a product with
// numbers as they are stored differs from one with their float32 copy only in the order of its sums.
// Instruction set chosen at run time (Highway). Thread rule: pure functions.

#include <cstddef>
#include <cstdint>

namespace headscope {

using Index = std::int64_t;

enum class Stored : std::uint8_t { f32, f16, bf16, q8_0 };

namespace stored {

inline constexpr Index block = 32;  ///< numbers of Q8_0 that share a scale

/// Bytes of so many numbers. REQUIRES whole blocks of Q8_0.
Index bytes_of(Stored kind, Index count);
/// Whether a row of numbers may begin at this one: anywhere but inside a block.
inline bool begins_at(Stored kind, Index number) {
  return kind != Stored::q8_0 || number % block == 0;
}

// Of the numbers that begin at `from`. NaN and infinity stay what they are; every kind but f32, which needs nothing.

float number(Stored kind, const std::byte* from, Index index);
/// Numbers [first, first + count).
void decode(Stored kind, const std::byte* from, Index first, Index count, float* to);
/// Whether [first, first + count) are finite, by their bits; of Q8_0 the blocks that they lie in.
bool finite(Stored kind, const std::byte* from, Index first, Index count);

/// The right matrix of a product, whose numbers lie one behind the other along its columns: element (k, j) is number
/// first + j · stride + k, each column begins at a whole block. Or (plain kinds alone) along its rows: first + k ·
/// stride + j.
struct Lines {
  Stored kind = Stored::f32;
  const std::byte* from = nullptr;
  Index first = 0, stride = 0;
  bool rows = false;

  Lines from_column(Index j) const { return {kind, from, first + j * (rows ? 1 : stride), stride, rows}; }
  /// REQUIRES rows.
  Lines from_row(Index k) const { return {kind, from, first + k * stride, stride, rows}; }
};
/// Row k of out, `out_stride` floats from the one before, is B's numbers (k, 0) … (k, columns − 1).
void unpack(const Lines& b, Index depth, Index columns, float* out, Index out_stride);
/// c (rows, columns) = a (rows, depth) · B + bias, each number of B read once for every 8 rows: for few rows, where
/// reading it is what takes time. a has unit inner stride, `bias` (columns) may be null. REQUIRES a depth of whole
/// blocks. An element has the same bits whatever rows and columns it is computed with.
void multiply(const float* a, Index a_stride, Index rows, Index depth, const Lines& b, Index columns, const float* bias,
              float* c, Index c_stride);

}  // namespace stored
}  // namespace headscope
