// z and what is told of rows, by tiles of queries and keys; and the order in which the kernels of tiles run.

#include <type_traits>

#include "core/cuda/attention_tile.cuh"

namespace headscope::cuda {
namespace {

/// A block's room: its queries, and two steps' keys, values and labels. Fewer keys where rows are wide, so that they
/// find room on every card.
template <int D, bool exact, int warps>
struct Layout {
  static constexpr int keys = D <= 64 ? 64 : (exact ? 16 : 32);
  static constexpr int query_halves = room_of<D, exact>(16 * warps), key_halves = room_of<D, exact>(keys);
  static constexpr int labels = keys + 4;  // from that of the key before, rounded up to what one copy takes
  static constexpr std::size_t bytes = sizeof(Half) * (query_halves + 4 * key_halves) + 2 * sizeof(int) * labels;
};

/// Blocks that a processor shall have registers for.
template <int D, bool exact, bool simple>
constexpr int blocks_of(int warps) {
  if (D <= 64 && simple) return 16 / warps;
  return exact ? 2 : 3;
}

constexpr float weight_unit = 1.0f / (1 << 15);  // weights beside the largest are stored as so many of it

/// One row's softmax so far. Its four lanes share the largest score, and have a part of the sums each.
struct Running {
  float most = -infinity;
  int key = 0x7fffffff;     // the first of this lane's that has it
  float first = -infinity;  // the score of key 0
  Sums sums;
};

/// Scores → e^(s − largest), and what they add to the row's sums, `factor` · s being the scores. What is summed up
/// beside an earlier largest score counts `fall` of it from here on.
template <bool exact, int N>
__device__ float take(Running& row, float s[N / 8][4], int r, float factor, int key0, int quad) {
  float most = -infinity;
#pragma unroll
  for (int j = 0; j < N / 8; ++j) most = fmaxf(most, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
  for (int other = 2; other > 0; other /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, other));
  float fall = 1;
  if (const float now = factor * most; now > row.most) {
    row.key = 0x7fffffff;
#pragma unroll
    for (int j = N / 8 - 1; j >= 0; --j)
#pragma unroll
      for (int c = 1; c >= 0; --c)
        if (s[j][2 * r + c] == most) row.key = key0 + 8 * j + 2 * quad + c;  // the first of equals stays
    const float step = fmaxf(row.most - now, least<exact>);
    fall = exponential<exact>(step);
    row.sums.rescale(step, fall);
    row.most = now;
  }
  const float base = row.most == -infinity ? 0.0f : row.most;
  const bool leads = key0 + quad == 0;  // this lane's first key is key 0
  if (leads) row.first = factor * s[0][2 * r];
#pragma unroll
  for (int j = 0; j < N / 8; ++j)
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float& cell = s[j][2 * r + c];
      const float below = exact ? cell - base : fmaf(cell, factor, -base), e = exponential<exact>(below);
      cell = e;
      const float counts = j == 0 && c == 0 && leads ? 0.0f : e;
      row.sums.rest += counts;
      row.sums.slope += counts * fmaxf(below, least<exact>);
    }
  return fall;
}

/// What keys of the same token, and those after them, have of the weights. `near`: some stand at the query or behind.
template <int N, bool near>
__device__ void link(Sums& sums, const float e[N / 8][4], int r, const int* labels, int label, int quad, int before) {
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
    const int at = 8 * j + 2 * quad;
    const int2 pair = *reinterpret_cast<const int2*>(labels + 4 + at);
    const int of[3] = {labels[3 + at], pair.x, pair.y};  // of the key before, too
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const float weight = e[j][2 * r + c];
      if (of[c + 1] == label && (!near || at + c < before)) sums.duplicate += weight;
      if (of[c] == label && (!near || at + c <= before)) sums.induction += weight;
    }
  }
}

/// z and what is told of every row, by one look at keys and values: what was summed up is made less wherever a larger
/// score turns up (Milakov & Gimelshein, 2018; Dao, FlashAttention-2, 2023). A warp has 16 queries.
template <int D, bool exact, bool simple, int warps>
__global__ void __launch_bounds__(32 * warps, blocks_of<D, exact, simple>(warps))
    attend_kernel(const AttentionTask t, const TileRoom room) {
  using Room = Layout<D, exact, warps>;
  constexpr int N = Room::keys, side = side_of<D>, queries = 16 * warps;
  constexpr int query_rest = queries * pitch_of<D>, key_rest = N * pitch_of<D>;
  extern __shared__ __align__(16) float shared[];
  Half* const own = reinterpret_cast<Half*>(shared);
  Half* const others = own + Room::query_halves;  // keys, values, of two steps
  int* const labels = reinterpret_cast<int*>(others + 4 * Room::key_halves);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, quad = lane % 4;
  const int first = (static_cast<int>(gridDim.x) - 1 - static_cast<int>(blockIdx.x)) * queries;  // longest first
  const int head = blockIdx.y, kv = head / (t.heads / t.kv_heads);
  const int query[2] = {first + 16 * warp + g, first + 16 * warp + g + 8};

  const int4* const spans = room.spans + head * room.tiles;
  const int4 seen = spans[(first + 16 * warp) / side];  // by this warp's tile
  int begin = seen.x, end = seen.y;
#pragma unroll
  for (int i = 0; i < (queries + side - 1) / side; ++i) {
    begin = min(begin, spans[first / side + i].x);
    end = max(end, spans[first / side + i].y);
  }
  begin = begin / N * N;

  const auto load = [&](int key0, int stage) {
    if (key0 >= end) return;
    copy_rows<D, exact, N, 32 * warps>(room.k, kv, key0, true, others + 2 * stage * Room::key_halves);
    copy_rows<D, exact, N, 32 * warps>(room.v, kv, key0, true, others + (2 * stage + 1) * Room::key_halves);
    if (t.labels && threadIdx.x < Room::labels / 4)
      copy_async16(labels + stage * Room::labels + 4 * threadIdx.x, room.labels + key0 + 4 * threadIdx.x, true);
    commit_copies();
  };
  copy_rows<D, exact, queries, 32 * warps>(room.q, head, first, true, own);
  load(begin, 0);

  const HeadTerms& h = t.head[head];
  const bool plain = simple || h.simple;
  const float unit = room.unit[head] * room.unit[t.heads + kv], scale = h.scale * unit * score_unit<exact>;
  const float factor = exact || !plain ? 1.0f : scale;
  Running rows[2];
  int label[2] = {-2, -2};
#pragma unroll
  for (int r = 0; r < 2; ++r)
    if (t.labels && query[r] < t.n_query) label[r] = t.labels[t.offset + query[r]];
  float out[D / 8][4] = {};
  int stage = 0;
  for (int key0 = begin; key0 < end; key0 += N, stage = 1 - stage) {
    wait_copies<0>();
    __syncthreads();
    load(key0 + N, 1 - stage);
    if (key0 >= seen.y || key0 + N <= seen.x) continue;
    const Half* const keys = others + 2 * stage * Room::key_halves;
    const Half* const values = keys + Room::key_halves;
    float p[N / 8][4];
    products<D, exact, N>(own + 16 * warp * pitch_of<D>, query_rest, keys, key_rest, lane, p);

    if (plain) {
      if (exact)
#pragma unroll
        for (int j = 0; j < N / 8; ++j)
#pragma unroll
          for (int c = 0; c < 4; ++c) p[j][c] *= scale;
      if (key0 < seen.z || key0 + N > seen.w)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int2 range =
              query[r] < t.n_query ? t.ranges[static_cast<Index>(h.ranges) * t.n_query + query[r]] : make_int2(0, 0);
          const auto count = static_cast<unsigned int>(range.y - range.x);
          const auto from = static_cast<unsigned int>(key0 + 2 * quad - range.x);
#pragma unroll
          for (int j = 0; j < N / 8; ++j)
#pragma unroll
            for (int c = 0; c < 2; ++c)
              if (from + static_cast<unsigned int>(8 * j + c) >= count) p[j][2 * r + c] = -infinity;
        }
    } else {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const Row row = row_of(t, h, query[r]);
#pragma unroll
        for (int j = 0; j < N / 8; ++j)
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            float& cell = p[j][2 * r + c];
            cell = score_unit<exact> * score(t, h, row, key0 + 8 * j + 2 * quad + c, unit * cell);
          }
      }
    }

    float fall[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      fall[r] = take<exact, N>(rows[r], p, r, factor, key0, quad);
      if (!t.labels) continue;
      const int before = t.offset + query[r] - key0;
      if (key0 + N > t.offset + first + 16 * warp)
        link<N, true>(rows[r].sums, p, r, labels + stage * Room::labels, label[r], quad, before);
      else
        link<N, false>(rows[r].sums, p, r, labels + stage * Room::labels, label[r], quad, before);
    }
    if (__any_sync(0xffffffffu, fall[0] != 1.0f || fall[1] != 1.0f))
#pragma unroll
      for (int i = 0; i < D / 8; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c) out[i][c] *= fall[c / 2];

    // What a lane holds of the weights is what it holds of a left side.
    const Half* const value = values + lane % 16 * pitch_of<D> + lane / 16 * 8;
#pragma unroll
    for (int j = 0; j < N / 8; j += 2) {
      Block<exact> a;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const pair = &p[j + i / 2][i % 2 * 2];
        const Pair<exact> rounded(pair[0] / weight_unit, pair[1] / weight_unit);
        a.high[i] = rounded.high;
        if (exact) a.low[exact ? i : 0] = rounded.low;
      }
#pragma unroll
      for (int i = 0; i < D; i += 16) {
        Block<exact> b;
        load_matrices_turned(b.high, value + 8 * j * pitch_of<D> + i);
        if (exact) load_matrices_turned(b.low, value + key_rest + 8 * j * pitch_of<D> + i);
        multiply_add(out[i / 8], a, b, 0);
        multiply_add(out[i / 8 + 1], a, b, 1);
      }
    }
  }

  const bool stats = t.stats.log_sum_exp != nullptr;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    Running& run = rows[r];
    Sums& sums = run.sums;
    float* const parts[4] = {&sums.rest, &sums.slope, &sums.duplicate, &sums.induction};
#pragma unroll
    for (int i = 0; i < 4; ++i)
      for (int other = 2; other > 0; other /= 2) *parts[i] += __shfl_xor_sync(0xffffffffu, *parts[i], other);
    for (int other = 2; other > 0; other /= 2) run.key = min(run.key, __shfl_xor_sync(0xffffffffu, run.key, other));
    const float first = __shfl_sync(0xffffffffu, run.first, lane / 4 * 4) / score_unit<exact>;
    sums.slope /= score_unit<exact>;

    const Row row = row_of(t, h, query[r]);
    Peak peak;
    peak.most = run.most / score_unit<exact>;
    peak.key = run.key;
    peak.sum = sums.rest + expf(first - (peak.most == -infinity ? 0.0f : peak.most));
    const Softmax soft = softmax_of(peak, row.sink);
    const float step = fmaxf(peak.most - soft.most, nothing), by = expf(step);  // less than 1 beside a larger sink
    const float first_below = fmaxf(first - soft.most, nothing);
    sums.rescale(step, by);
    sums.first = expf(first_below);
    sums.first_slope = sums.first * first_below;
    sums.duplicate *= soft.by;
    sums.induction *= soft.by;
    if (stats && quad == 0) {
      const Index at = head * room.q.rows + query[r];
      const bool none = query[r] >= t.n_query || peak.none();
      room.base[at] = none    ? infinity
                      : exact ? soft.most
                              : score_unit<exact> * (soft.most + static_cast<float>(soft.log_z()));
      room.by[at] = none ? 0.0f : soft.by;
      if (query[r] < t.n_query) tell(t, head, row, peak, soft, sums);
    }
    if (query[r] >= t.n_query) continue;
    const float of_sums = by * soft.by * (weight_unit * room.unit[t.heads + t.kv_heads + kv]);
    float* const z = t.z + query[r] * t.z_row + head * t.z_head;
#pragma unroll
    for (int i = 0; i < D / 8; ++i)
#pragma unroll
      for (int c = 0; c < 2; ++c)
        if (const int at = 8 * i + 2 * quad + c; at < t.d_value) z[at] = out[i][2 * r + c] * of_sums;
  }
}

template <int D, bool exact, bool simple, int warps>
void attend(const AttentionTask& task, const TileRoom& room, cudaStream_t stream) {
  constexpr std::size_t bytes = Layout<D, exact, warps>::bytes;
  cudaFuncSetAttribute(attend_kernel<D, exact, simple, warps>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(bytes));  // of this card; a refusal is the launch's error
  const dim3 grid(static_cast<unsigned int>((task.n_query + 16 * warps - 1) / (16 * warps)),
                  static_cast<unsigned int>(task.heads));
  attend_kernel<D, exact, simple, warps><<<grid, 32 * warps, bytes, stream>>>(task, room);
}

/// Twice as many queries share a step's keys where there are enough of them to keep the card busy, and there is room.
template <int D, bool exact>
void attend(const AttentionTask& task, const TileRoom& room, Room card, cudaStream_t stream) {
  constexpr int most = D <= 64 ? 8 : 4;
  static_assert(Layout<D, exact, 4>::bytes <= least_shared);
  const bool many = (task.n_query + 127) / 128 * task.heads >= 2 * card.processors;
  if (!task.simple)
    attend<D, exact, false, 4>(task, room, stream);
  else if (many && Layout<D, exact, most>::bytes <= card.shared_bytes)
    attend<D, exact, true, most>(task, room, stream);
  else
    attend<D, exact, true, 4>(task, room, stream);
}

template <int D>
void attend(const AttentionTask& task, const TileRoom& room, Room card, cudaStream_t stream) {
  task.exact ? attend<D, true>(task, room, card, stream) : attend<D, false>(task, room, card, stream);
}

int width_of(const AttentionTask& task) {
  const int width = task.d > task.d_value ? task.d : task.d_value;
  return width <= 32 ? 32 : width <= 64 ? 64 : 128;
}

/// The places in a task's scratch; `bytes`: all of it.
TileRoom room_in(const AttentionTask& task, std::size_t& bytes) {
  const auto up = [](Index n, Index step) { return (n + step - 1) / step * step; };
  const int width = width_of(task);
  const auto begin = reinterpret_cast<std::uintptr_t>(task.scratch);  // null while its size is asked for
  std::uintptr_t at = begin;
  const auto place = [&](auto*& pointer, Index count) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(at);
    at += static_cast<std::uintptr_t>(up(count * Index{sizeof *pointer}, 256));
  };
  const Index query_rows = up(task.n_query, row_step), key_rows = up(task.n_key, row_step);
  const auto operand = [&](Halves& made, Index heads, Index rows) {
    made.rows = rows;
    made.part = heads * rows * width;
    place(made.data, (task.exact ? 2 : 1) * made.part);
  };
  TileRoom room{};
  operand(room.q, task.heads, query_rows);
  operand(room.k, task.kv_heads, key_rows);
  operand(room.v, task.kv_heads, key_rows);
  const Index heads = task.heads + 2 * task.kv_heads;
  place(room.largest, heads * largest_parts);
  place(room.unit, heads);
  place(room.labels, key_rows + 4);
  room.tiles = static_cast<int>(query_rows / (width <= 64 ? side_of<64> : side_of<128>));
  place(room.spans, Index{task.heads} * room.tiles);
  place(room.base, task.heads * query_rows);
  place(room.by, task.heads * query_rows);
  bytes = static_cast<std::size_t>(at - begin);
  return room;
}

}  // namespace

bool tiles_take(int d, int d_value, Room card) {
  return d <= 128 && d_value <= 128 && least_shared <= card.shared_bytes;
}

std::size_t tiles_bytes(const AttentionTask& task) {
  std::size_t bytes = 0;
  room_in(task, bytes);
  return bytes;
}

void attention_by_tiles(const AttentionTask& task, Room card, cudaStream_t stream) {
  std::size_t bytes = 0;
  const TileRoom room = room_in(task, bytes);
  const int width = width_of(task);
  make_operands(task, room, width, stream);
  if (width == 32)
    attend<32>(task, room, card, stream);
  else if (width == 64)
    attend<64>(task, room, card, stream);
  else
    attend<128>(task, room, card, stream);
  if (task.stats.log_sum_exp) attention_columns(task, room, width, card, stream);
}

}  // namespace headscope::cuda
