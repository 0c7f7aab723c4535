#pragma once
// Tiles of queries, keys and values as the tensor cores read them, and what the kernels of tiles leave for each other.
// Private to core/cuda.

#include "core/cuda/attention_row.cuh"
#include "core/cuda/tensor_cores.cuh"

namespace headscope::cuda {

using Half = unsigned short;  // the bits of a float16

/// Queries, and keys, of a tile whose rows have D numbers.
template <int D>
constexpr int side_of = D <= 64 ? 64 : 32;
constexpr std::size_t least_shared = std::size_t{99} << 10;  // what a block may have on every card from Ampere on
constexpr int row_step = 128;                                // rows are made up to a multiple of that many, by zeros
/// Numbers between two rows on chip, so that 16 bytes of eight rows lie in different banks.
template <int D>
constexpr int pitch_of = D + 8;
/// Numbers of so many rows on chip: rounded, then, where `exact`, what that lacks.
template <int D, bool exact>
constexpr int room_of(int rows) {
  return (exact ? 2 : 1) * rows * pitch_of<D>;
}

/// Queries, keys or values on the card: [part][head][row][D].
struct Halves {
  Half* data;
  Index rows, part;  // from head to head, from rounded to rest
};

/// What the kernels of tiles keep outside the chip.
struct TileRoom {
  Halves q, k, v;
  float* largest;    // magnitudes [q's heads, k's, v's][largest_parts]
  float* unit;       // likewise, by head: what a stored 1 stands for
  int* labels;       // of key −4 …; −1: no key
  int4* spans;       // [head][tile of queries]: keys [x, y) are seen by some, [z, w) by all of its queries
  float *base, *by;  // [head][q.rows]: weight = e^(s − base) · by; 2^(s − base) where not exact
  int tiles;         // of queries
};
constexpr int largest_parts = 32;

/// Rounds queries, keys and values, and looks at what is seen.
void make_operands(const AttentionTask& task, const TileRoom& room, int width, cudaStream_t stream);
/// Sums of columns and distances, the pooled picture, and weights where they are kept, once `base` and `by` are known.
void attention_columns(const AttentionTask& task, const TileRoom& room, int width, Room card, cudaStream_t stream);

/// Starts copying rows from `first` on; zeros where they are not `there`.
template <int D, bool exact, int rows, int threads>
__device__ inline void copy_rows(const Halves& from, int head, int first, bool there, Half* to) {
  constexpr int eighths = D / 8, all = rows * eighths;
  static_assert(all % threads == 0 && threads % eighths == 0);
  const int own = threadIdx.x;
  const Half* source = from.data + (head * from.rows + (there ? first : 0)) * D + own * 8;
  to += own / eighths * pitch_of<D> + own % eighths * 8;
#pragma unroll
  for (int part = 0; part < (exact ? 2 : 1); ++part) {
#pragma unroll
    for (int step = 0; step < all; step += threads)
      copy_async16(to + (part * rows + step / eighths) * pitch_of<D>, source + step * 8, there);
    source += from.part;
  }
}

/// A block of a product's left side from [row][column] at `tile`.
template <int D, bool exact>
__device__ inline void load_left(Block<exact>& block, const Half* tile, int lane, int rest) {
  const Half* const row = tile + lane % 16 * pitch_of<D> + lane / 16 * 8;
  load_matrices(block.high, row);
  if (exact) load_matrices(block.low, row + rest);
}

/// dot (16 × N) = rows of `left` · rows of `right`, whose rests lie so many numbers behind.
template <int D, bool exact, int N>
__device__ inline void products(const Half* left, int left_rest, const Half* right, int right_rest, int lane,
                                float dot[N / 8][4]) {
#pragma unroll
  for (int j = 0; j < N / 8; ++j)
#pragma unroll
    for (int c = 0; c < 4; ++c) dot[j][c] = 0;
  const Half* const row = right + (lane / 16 * 8 + lane % 8) * pitch_of<D> + lane / 8 % 2 * 8;
#pragma unroll
  for (int i = 0; i < D; i += 16) {
    Block<exact> a;
    load_left<D, exact>(a, left + i, lane, left_rest);
#pragma unroll
    for (int j = 0; j < N; j += 16) {
      Block<exact> b;
      load_matrices(b.high, row + j * pitch_of<D> + i);
      if (exact) load_matrices(b.low, row + right_rest + j * pitch_of<D> + i);
      multiply_add(dot[j / 8], a, b, 0);
      multiply_add(dot[j / 8 + 1], a, b, 1);
    }
  }
}

/// The largest of the warp's numbers, none of which is negative.
__device__ inline float warp_largest(float x) {
  return __uint_as_float(__reduce_max_sync(0xffffffffu, __float_as_uint(x)));
}

/// Scores in the unit of the exponential: of e where `exact`, else of 2.
template <bool exact>
constexpr float score_unit = exact ? 1.0f : 1.44269504f;
/// e, or 2, to that is 0.
template <bool exact>
constexpr float least = nothing * score_unit<exact>;
/// To the last bits, or, beside products of 11 bits, to 2 units of 24.
template <bool exact>
__device__ inline float exponential(float x) {
  return exact ? expf(x) : exp2_approx(x);
}

}  // namespace headscope::cuda
