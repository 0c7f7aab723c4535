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

}  // namespace stored
}  // namespace headscope
