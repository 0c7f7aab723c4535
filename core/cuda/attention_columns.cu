// What needs weights that are final: sums of columns and distances, the pooled picture, the weights themselves. A
// product's rows are keys here and its columns queries, and a block goes down a diagonal: so a lane's cells always have
// the same distances, whose sums stay in its registers, and a column's weights lie side by side.

#include "core/cuda/attention_tile.cuh"

namespace headscope::cuda {
namespace {

constexpr int stage_pitch = 40;  // two rows of eight lanes' pairs in different banks
constexpr int longest = 32;      // steps of a block: a bit each

/// `window`: tiles of keys that share a tile of queries. A step takes one more of both, while the ones before are read.
template <int D, bool exact, int window>
struct Layout {
  static constexpr int side = side_of<D>, warps = window * side / 16;
  static constexpr int tile = room_of<D, exact>(side), key_tiles = window + 1;
  static constexpr std::size_t operands = sizeof(Half) * tile * (key_tiles + 2);
  static constexpr int sums_pitch = side + 4;
  static constexpr std::size_t sums = sizeof(float) * window * side * sums_pitch;  // in the same place, at last
  static constexpr std::size_t terms = sizeof(float) * 2 * 2 * side;
  static constexpr std::size_t stages = sizeof(float) * warps * 16 * stage_pitch;
  static constexpr std::size_t terms_at = operands > sums ? operands : sums;
  static constexpr std::size_t bytes(bool staged) { return terms_at + terms + (staged ? stages : 0); }
};

/// The largest weights of 16 keys and a tile of queries, where either has no more than two bins.
template <int side>
__device__ void pool(const StatsRoom& s, int head, int key0, int query0, const float p[side / 8][4], int lane) {
  const int row = query0 / s.bin, column = key0 / s.bin;
  const int next_row = (row + 1) * s.bin - query0, next_column = (column + 1) * s.bin - key0;
  const bool rows = next_row < side, columns = next_column < 16;  // there are two of them
  float largest[2][2] = {};                                       // [key][bin of queries]
#pragma unroll
  for (int j = 0; j < side / 8; ++j)
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (!rows) {
        largest[c / 2][0] = fmaxf(largest[c / 2][0], p[j][c]);
      } else {
        const bool later = 8 * j + lane % 4 * 2 + c % 2 >= next_row;
        largest[c / 2][0] = fmaxf(largest[c / 2][0], later ? 0.0f : p[j][c]);
        largest[c / 2][1] = fmaxf(largest[c / 2][1], later ? p[j][c] : 0.0f);
      }
    }
#pragma unroll
  for (int y = 0; y < 2; ++y)
#pragma unroll
    for (int x = 0; x < 2; ++x) {
      if ((y == 1 && !rows) || (x == 1 && !columns)) continue;
      float all = 0;
#pragma unroll
      for (int r = 0; r < 2; ++r)
        if ((lane / 4 + 8 * r >= next_column) == (x == 1)) all = fmaxf(all, largest[r][y]);
      all = warp_largest(all);
      if (lane == 0)
        raise(s.overview + (static_cast<Index>(head) * s.overview_rows + row + y) * s.overview_columns + column + x,
              all);
    }
}

/// Likewise for bins of any size, by way of `stage`, the warp's own.
template <int side>
__device__ void pool_small(const StatsRoom& s, int head, int key0, int query0, const float p[side / 8][4], int lane,
                           float* stage) {
#pragma unroll
  for (int part = 0; part < side / 32; ++part) {
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int r = 0; r < 2; ++r)
        *reinterpret_cast<float2*>(stage + (lane / 4 + 8 * r) * stage_pitch + 8 * j + lane % 4 * 2) =
            make_float2(p[4 * part + j][2 * r], p[4 * part + j][2 * r + 1]);
    __syncwarp();
    float cells[16];  // of one query
#pragma unroll
    for (int key = 0; key < 16; ++key) cells[key] = stage[key * stage_pitch + lane];
    const int query = query0 + 32 * part + lane, ahead = s.bin - query % s.bin;  // this lane and those after it
    int column = key0 / s.bin, stop = (column + 1) * s.bin - key0;
    float largest = 0;
#pragma unroll
    for (int key = 0; key < 16; ++key) {
      largest = fmaxf(largest, cells[key]);
      if (key + 1 < stop && key < 15) continue;  // of all lanes
      for (int other = 1; other < min(s.bin, 32); other *= 2) {
        const float later = __shfl_down_sync(0xffffffffu, largest, other);
        if (other < ahead && lane + other < 32) largest = fmaxf(largest, later);
      }
      if (lane == 0 || query % s.bin == 0)
        raise(s.overview + (static_cast<Index>(head) * s.overview_rows + query / s.bin) * s.overview_columns + column,
              largest);
      largest = 0;
      ++column;
      stop += s.bin;
    }
  }
}

template <int D, bool exact, bool simple, int window>
__global__ void __launch_bounds__(32 * Layout<D, exact, window>::warps,
                                  (simple || D > 64 ? 16 : 12) / Layout<D, exact, window>::warps)
    columns_kernel(const AttentionTask t, const TileRoom room, const int length, const bool staged) {
  using Room = Layout<D, exact, window>;
  constexpr int side = Room::side, rest = side * pitch_of<D>;
  extern __shared__ __align__(16) float shared[];
  Half* const keys = reinterpret_cast<Half*>(shared);         // tile i at i % key_tiles
  Half* const queries = keys + Room::key_tiles * Room::tile;  // of this step and the next
  float* const terms = shared + Room::terms_at / sizeof(float);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, quad = lane % 4;
  float* const stage = terms + 4 * side + warp * 16 * stage_pitch;
  const int own = warp / (side / 16), own_row = warp % (side / 16) * 16;  // this warp's tile of the window, and keys
  const int head = blockIdx.z, kv = head / (t.heads / t.kv_heads);
  const int first = blockIdx.x * length;  // tile of queries
  // From a tile of queries to the window's first of keys.
  const int away = (t.n_key + side - 1) / side - window * (1 + static_cast<int>(blockIdx.y));

  // Of the steps, those where something is seen, by the window and by this warp; and where all of it is.
  int4 span = make_int4(t.n_key, 0, t.n_key, 0);
  if (lane < length && first + lane < room.tiles) span = room.spans[head * room.tiles + first + lane];
  const int window0 = (first + lane + away) * side, own0 = window0 + own * side + own_row;
  const unsigned int some =
      __ballot_sync(0xffffffffu, span.x < span.y && span.x < window0 + window * side && span.y > window0);
  const unsigned int seen = __ballot_sync(0xffffffffu, span.x < span.y && span.x < own0 + 16 && span.y > own0);
  const unsigned int whole = __ballot_sync(0xffffffffu, own0 >= span.z && own0 + 16 <= span.w);
  if (some == 0) return;
  const int begin = __ffs(static_cast<int>(some)) - 1, end = 32 - __clz(static_cast<int>(some));

  const auto key_place = [&](int tile) {
    return keys + (tile % Room::key_tiles + Room::key_tiles) % Room::key_tiles * Room::tile;
  };
  const auto load_keys = [&](int tile) {
    copy_rows<D, exact, side, 32 * Room::warps>(room.k, kv, tile * side, tile >= 0 && tile * side < room.k.rows,
                                                key_place(tile));
  };
  const auto load_queries = [&](int step) {
    const int query0 = (first + step) * side;
    copy_rows<D, exact, side, 32 * Room::warps>(room.q, head, query0, true, queries + step % 2 * Room::tile);
    if (threadIdx.x < side / 2) {
      const int by = threadIdx.x / (side / 4), at = threadIdx.x % (side / 4) * 4;
      copy_async16(terms + (step % 2 * 2 + by) * side + at,
                   (by ? room.by : room.base) + head * room.q.rows + query0 + at, true);
    }
    commit_copies();
  };
#pragma unroll
  for (int i = 0; i < window - 1; ++i) load_keys(first + begin + away + i);
  load_keys(first + begin + away + window - 1);
  load_queries(begin);

  const HeadTerms& h = t.head[head];
  const bool plain = simple || h.simple;
  const float unit = room.unit[head] * room.unit[t.heads + kv], scale = h.scale * unit * score_unit<exact>;
  float distances[side / 8][4] = {};
  for (int step = begin; step < end; ++step) {
    wait_copies<0>();
    __syncthreads();
    if (step + 1 < end) {
      load_keys(first + step + 1 + away + window - 1);
      load_queries(step + 1);
    }
    if ((seen >> step & 1) == 0) continue;
    const int query0 = (first + step) * side, tile = first + step + away + own, key0 = tile * side + own_row;
    float p[side / 8][4];  // keys g and g + 8; queries 8j + 2 quad, and the one after
    products<D, exact, side>(key_place(tile) + own_row * pitch_of<D>, rest, queries + step % 2 * Room::tile, rest, lane,
                             p);
    const float* const base = terms + step % 2 * 2 * side + 2 * quad;
    if (plain && (whole >> step & 1) != 0) {
#pragma unroll
      for (int j = 0; j < side / 8; ++j) {
        const float2 bases = *reinterpret_cast<const float2*>(base + 8 * j);
        const float2 by = exact ? *reinterpret_cast<const float2*>(base + side + 8 * j) : make_float2(1, 1);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const float from = c % 2 ? bases.y : bases.x;
          p[j][c] = exact ? exponential<exact>(scale * p[j][c] - from) * (c % 2 ? by.y : by.x)
                          : exponential<exact>(fmaf(p[j][c], scale, -from));
        }
      }
    } else {
#pragma unroll
      for (int j = 0; j < side / 8; ++j)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const Row row = row_of(t, h, query0 + 8 * j + 2 * quad + c);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            float& cell = p[j][2 * r + c];
            const int key = key0 + g + 8 * r;
            const float s = !plain ? score_unit<exact> * score(t, h, row, key, unit * cell)
                            : key >= row.keys.x && key < row.keys.y ? scale * cell
                                                                    : -infinity;
            cell = exponential<exact>(s - base[8 * j + c]) * (exact ? base[side + 8 * j + c] : 1.0f);
          }
        }
    }

    float sum[2] = {};
#pragma unroll
    for (int j = 0; j < side / 8; ++j)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        sum[c / 2] += p[j][c];
        distances[j][c] += p[j][c];
      }
#pragma unroll
    for (int r = 0; r < 2; ++r)
      for (int other = 2; other > 0; other /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], other);
    if (quad < 2)
      add_mass(t.stats.column + static_cast<Index>(head) * t.n_key + key0 + g + 8 * quad, quad == 0 ? sum[0] : sum[1]);

    if (t.stats.overview && t.stats.bin > 1) {
      if (staged)
        pool_small<side>(t.stats, head, key0, query0, p, lane, stage);
      else
        pool<side>(t.stats, head, key0, query0, p, lane);
    }
    if (t.weights)
#pragma unroll
      for (int j = 0; j < side / 8; ++j)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const int query = query0 + 8 * j + 2 * quad + c % 2, key = key0 + g + c / 2 * 8;
          if (query < t.n_query && key < t.n_key)
            t.weights[(static_cast<Index>(head) * t.n_query + query) * t.n_key + key] = p[j][c];
        }
  }

  __syncthreads();
#pragma unroll
  for (int j = 0; j < side / 8; ++j)
#pragma unroll
    for (int r = 0; r < 2; ++r)
      *reinterpret_cast<float2*>(shared + (own * side + own_row + g + 8 * r) * Room::sums_pitch + 8 * j + 2 * quad) =
          make_float2(distances[j][2 * r], distances[j][2 * r + 1]);
  __syncthreads();
  // A thread has one diagonal of one tile: query − key = distance within it.
  const int of = threadIdx.x / (2 * side), distance = static_cast<int>(threadIdx.x) % (2 * side) - side;
  float sum = 0;
#pragma unroll 16
  for (int key = 0; key < side; ++key)
    if (const int query = key + distance; query >= 0 && query < side)
      sum += shared[(of * side + key) * Room::sums_pitch + query];
  add_mass(t.stats.distance + static_cast<Index>(head) * (t.n_query + t.n_key - 1) + t.n_key - 1 + distance -
               (away + of) * side,
           sum);
}

template <int D, bool exact, bool simple, int window>
void sum_up(const AttentionTask& task, const TileRoom& room, int processors, bool staged, cudaStream_t stream) {
  using Room = Layout<D, exact, window>;
  const std::size_t bytes = Room::bytes(staged);
  cudaFuncSetAttribute(columns_kernel<D, exact, simple, window>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(bytes));  // of this card; a refusal is the launch's error
  const auto tiles = [](int rows) { return (rows + Room::side - 1) / Room::side; };
  const int down = tiles(task.n_query), bands = (down + tiles(task.n_key) + window - 2) / window;
  // As long as leaves every processor a few blocks, of which about half see something.
  int length = longest;
  while (length > 4 && static_cast<Index>((down + length - 1) / length) * bands * task.heads < 8 * processors)
    length /= 2;
  const dim3 grid(static_cast<unsigned int>((down + length - 1) / length), static_cast<unsigned int>(bands),
                  static_cast<unsigned int>(task.heads));
  columns_kernel<D, exact, simple, window><<<grid, 32 * Room::warps, bytes, stream>>>(task, room, length, staged);
}

template <int D, bool exact>
void sum_up(const AttentionTask& task, const TileRoom& room, Room card, cudaStream_t stream) {
  constexpr int side = side_of<D>, fewest = D <= 64 ? 1 : 2;
  static_assert(Layout<D, exact, fewest>::bytes(true) <= least_shared);
  const bool staged = task.stats.bin > 1 && task.stats.bin < side;
  const bool many = static_cast<Index>(room.tiles) * room.tiles * task.heads >= 64 * card.processors;
  if (!task.simple)
    sum_up<D, exact, false, fewest>(task, room, card.processors, staged, stream);
  else if (many && Layout<D, exact, 2>::bytes(staged) <= card.shared_bytes)
    sum_up<D, exact, true, 2>(task, room, card.processors, staged, stream);
  else
    sum_up<D, exact, true, fewest>(task, room, card.processors, staged, stream);
}

template <int D>
void sum_up(const AttentionTask& task, const TileRoom& room, Room card, cudaStream_t stream) {
  task.exact ? sum_up<D, true>(task, room, card, stream) : sum_up<D, false>(task, room, card, stream);
}

}  // namespace

void attention_columns(const AttentionTask& task, const TileRoom& room, int width, Room card, cudaStream_t stream) {
  if (width == 32)
    sum_up<32>(task, room, card, stream);
  else if (width == 64)
    sum_up<64>(task, room, card, stream);
  else
    sum_up<128>(task, room, card, stream);
}

}  // namespace headscope::cuda
