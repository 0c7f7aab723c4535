#pragma once
// Numbers as files keep them, read where they lie. Each is one float32: F16 and BF16 exactly, those in GGUF's blocks
// (whole numbers of few bits behind the scales that multiply them) as the format's own package decodes them, to the bit
// (gguf_types-inl.h). So a product with numbers as they are stored is that with their float32 copy.
// Instruction set chosen at run time (Highway). Thread rule: pure functions.

#include <cstddef>
#include <cstdint>

namespace headscope {

using Index = std::int64_t;

struct Ahead;

enum class Stored : std::uint8_t {
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  tq1_0,
  tq2_0,
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  nvfp4
};

namespace stored {

/// A block: so many numbers in so many bytes. Plain kinds have one.
struct Layout {
  Index numbers, bytes;
  Index halves[2] = {-1, -1};  ///< bytes of a block at which a scale stands as F16, for whether it is finite
};
inline constexpr Layout layouts[] = {
    {1, 4},                 // F32
    {1, 2},                 // F16
    {1, 2},                 // BF16
    {32, 34, {0, -1}},      // Q8_0
    {32, 18, {0, -1}},      // Q4_0
    {32, 20, {0, 2}},       // Q4_1
    {32, 22, {0, -1}},      // Q5_0
    {32, 24, {0, 2}},       // Q5_1
    {256, 84, {80, 82}},    // Q2_K
    {256, 110, {108, -1}},  // Q3_K
    {256, 144, {0, 2}},     // Q4_K
    {256, 176, {0, 2}},     // Q5_K
    {256, 210, {208, -1}},  // Q6_K
    {32, 18, {0, -1}},      // IQ4_NL
    {256, 136, {0, -1}},    // IQ4_XS
    {32, 17},               // MXFP4
    {256, 54, {52, -1}},    // TQ1_0
    {256, 66, {64, -1}},    // TQ2_0
    {256, 50, {0, -1}},     // IQ1_S
    {256, 56},              // IQ1_M: four bits in each of four places
    {256, 66, {0, -1}},     // IQ2_XXS
    {256, 74, {0, -1}},     // IQ2_XS
    {256, 82, {0, -1}},     // IQ2_S
    {256, 98, {0, -1}},     // IQ3_XXS
    {256, 110, {0, -1}},    // IQ3_S
    {64, 36},               // NVFP4
};
constexpr const Layout& layout(Stored kind) {
  return layouts[static_cast<std::size_t>(kind)];
}
inline constexpr Index longest_block = 256;

/// Each number by itself: rows and columns of them may be read.
constexpr bool plain(Stored kind) {
  return layout(kind).numbers == 1;
}
/// Whether a row of numbers may begin at this one: anywhere but inside a block.
constexpr bool begins_at(Stored kind, Index number) {
  return number % layout(kind).numbers == 0;
}
/// Bytes of so many numbers. REQUIRES whole blocks.
constexpr Index bytes_of(Stored kind, Index count) {
  return count / layout(kind).numbers * layout(kind).bytes;
}

// Of the numbers that begin at `from`. NaN and infinity stay what they are; every kind but f32, which needs nothing.

float number(Stored kind, const std::byte* from, Index index);
/// Numbers [first, first + count).
void decode(Stored kind, const std::byte* from, Index first, Index count, float* to);
/// Whether [first, first + count) are finite, by their bits; the blocks that they lie in.
bool finite(Stored kind, const std::byte* from, Index first, Index count);

/// The right matrix of a product, whose numbers lie one behind the other along its columns: element (k, j) is number
/// first + j · stride + k, each column begins at a whole block. Or (plain kinds alone) along its rows: first + k ·
/// stride + j.
struct Lines {
  Stored kind = Stored::f32;
  const std::byte* data = nullptr;
  Index first = 0, stride = 0;
  bool rows = false;

  /// The part that begins at (k, j). REQUIRES the beginning of a block.
  Lines from(Index k, Index j) const {
    return {kind, data, first + (rows ? k * stride + j : j * stride + k), stride, rows};
  }
};
/// Row k of out, `out_stride` floats from the one before, is B's numbers (k, 0) … (k, columns − 1). `ahead`: what is
/// read next.
void unpack(const Lines& b, Index depth, Index columns, float* out, Index out_stride, const Ahead& ahead);

// One row x of a product, for which numbers become floats in registers and in no cache. Sums run in panels::multiply's
// chunks, in its order, so that they are those of unpacked numbers to the bit.

/// How many columns are multiplied side by side: those that fill registers. 0 where there are none.
Index columns_beside(Stored kind);
/// Columns at the beginning of so many that the next two take.
inline Index whole_columns(Stored kind, Index columns) {
  const Index beside = columns_beside(kind);
  return beside > 0 ? columns / beside * beside : 0;
}
/// sums[j] (+)= Σ_k x[k] B(k, j) over a chunk or less, where B's rows lie one behind the other. `more`: beside what is
/// there. What lies `ahead` bytes behind each number is asked for.
void multiply_chunk(const Lines& b, const float* x, Index depth, Index columns, bool more, float* sums, Index ahead);
/// out[j] = added[j] + Σ_k x[k] B(k, j), where B's columns lie one behind the other; added up by every `block_depth`,
/// whole chunks. Null: nothing is added; may be `out`. The next columns are asked for, behind the last ones what lies
/// `ahead` bytes behind them. REQUIRES depth of whole chunks.
void multiply_columns(const Lines& b, const float* x, Index depth, Index columns, Index block_depth, const float* added,
                      float* out, Index ahead);

}  // namespace stored
}  // namespace headscope
