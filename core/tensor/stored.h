#pragma once
// Numbers as files keep them, read where they lie. Each is one float32: F16 and BF16 exactly, Q8_0 (GGUF: 32 whole
// numbers of 8 bits behind the F16 that multiplies them) as that one product, rounded to nearest. So a product with
// numbers as they are stored is that with their float32 copy.
// Instruction set chosen at run time (Highway). Thread rule: pure functions.

#include <cstddef>
#include <cstdint>

namespace headscope {

using Index = std::int64_t;

struct Ahead;

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

/// Columns at the beginning of so many that the next two take: those that fill registers.
Index whole_columns(Index columns);
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
