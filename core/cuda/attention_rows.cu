#include "core/cuda/attention_row.cuh"
#include "core/cuda/instructions.cuh"

namespace headscope::cuda {
namespace {

constexpr int most_row_threads = 1024;

/// The sums of every warp, left for the one that tells all.
constexpr int kinds = 6;
__device__ void leave(const Sums& own, float (*room)[kinds]) {
  float x[kinds] = {own.rest, own.slope, own.first, own.first_slope, own.duplicate, own.induction};
#pragma unroll
  for (int i = 0; i < kinds; ++i) {
    for (int lane = 16; lane > 0; lane /= 2) x[i] += __shfl_xor_sync(0xffffffffu, x[i], lane);
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32][i] = x[i];
  }
}
/// Those of all, for a whole warp.
__device__ Sums all_of(const float (*room)[kinds]) {
  float x[kinds];
#pragma unroll
  for (int i = 0; i < kinds; ++i) {
    x[i] = threadIdx.x < blockDim.x / 32 ? room[threadIdx.x][i] : 0.0f;
    for (int lane = 16; lane > 0; lane /= 2) x[i] += __shfl_xor_sync(0xffffffffu, x[i], lane);
  }
  return {x[0], x[1], x[2], x[3], x[4], x[5]};
}

__global__ void __launch_bounds__(most_row_threads) rows_kernel(const AttentionTask t) {
  extern __shared__ __align__(16) float shared[];
  __shared__ float room[32][kinds];
  __shared__ Peak peak_room[32];
  const int query = t.first_query + blockIdx.x, head = blockIdx.y, kv = head / (t.heads / t.kv_heads);
  let_next_start();
  constexpr int line = 32;  // numbers of a line of the cache
  for (int i = threadIdx.x; i < (t.n_key - t.fresh_rows) * 2; i += blockDim.x) {
    const int key = i / 2;
    const bool values = i % 2 == 1;
    const float* const from = values ? t.v + kv * t.v_head + key * t.v_row : t.k + kv * t.k_head + key * t.k_row;
    for (int at = 0; at < (values ? t.d_value : t.d); at += line) prefetch(from + at);
  }
  const HeadTerms h = t.head[head];  // sent before whatever kernel this one did not wait for
  const Row row = row_of(t, h, query);
  wait_for_before();
  float* const q = shared;       // d
  float* const parts = q + t.d;  // blockDim.x: parts of z
  float* const p =
      t.scratch ? t.scratch + (static_cast<Index>(head) * gridDim.x + blockIdx.x) * t.n_key : parts + 4 * blockDim.x;
  for (int i = threadIdx.x; i < t.d; i += blockDim.x) q[i] = t.q[query * t.q_row + head * t.q_head + i];
  // Every block that reads them puts them there: to wait for another's would take longer.
  for (int row = 0; row < t.fresh_rows; ++row) {
    const Index from = static_cast<Index>(row) * t.kv_heads + kv;
    for (int i = threadIdx.x; i < t.d; i += blockDim.x)
      t.to_k[row * t.k_row + kv * t.k_head + i] = t.fresh_k[from * t.d + i];
    for (int i = threadIdx.x; i < t.d_value; i += blockDim.x)
      t.to_v[row * t.v_row + kv * t.v_head + i] = t.fresh_v[from * t.d_value + i];
  }
  __syncthreads();

  const int lane = threadIdx.x % 8, group = threadIdx.x / 8, groups = blockDim.x / 8;
  const float* const k = t.k + kv * t.k_head;
  Peak peak;
  const int count = row.keys.y - row.keys.x;
  constexpr int at_once = 4;  // keys of a group of lanes, so that their loads are under way together
  for (int step = 0; step < (count + at_once * groups - 1) / (at_once * groups); ++step) {  // all lanes stay together
    float dots[at_once] = {};
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      const int key = row.keys.x + (step * at_once + u) * groups + group;
      if (key >= row.keys.y) continue;
      const float* const from = k + key * t.k_row;
      if (t.by_four) {
        for (int i = 4 * lane; i < t.d; i += 32) {
          const float4 four = *reinterpret_cast<const float4*>(from + i);
          dots[u] += q[i] * four.x + q[i + 1] * four.y + q[i + 2] * four.z + q[i + 3] * four.w;
        }
      } else {
        for (int i = lane; i < t.d; i += 8) dots[u] += q[i] * from[i];
      }
    }
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      float dot = dots[u];
      for (int other = 4; other > 0; other /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, other);
      const int key = row.keys.x + (step * at_once + u) * groups + group;
      const float s = score(t, h, row, key, dot);
      if (lane == 0 && key < row.keys.y) {
        p[key] = s;
        peak.take(s, key);
      }
    }
  }
  const auto of_warp = [](Peak& of) {
    for (int other = 16; other > 0; other /= 2) of.join(shuffled(of, other));
  };
  of_warp(peak);
  if (threadIdx.x % 32 == 0) peak_room[threadIdx.x / 32] = peak;
  __syncthreads();
  peak = threadIdx.x % 32 < blockDim.x / 32 ? peak_room[threadIdx.x % 32] : Peak{};
  of_warp(peak);
  const Softmax soft = softmax_of(peak, row.sink);
  const int label = t.labels ? t.labels[t.offset + query] : 0;

  Sums sums;
  const StatsRoom& s = t.stats;
  const bool stats = s.log_sum_exp != nullptr;
  for (int key = row.keys.x + static_cast<int>(threadIdx.x); key < row.keys.y; key += blockDim.x) {
    const float below = fmaxf(p[key] - soft.most, nothing), e = expf(below), weight = e * soft.by;
    p[key] = weight;
    if (!stats) continue;
    (key == 0 ? sums.first : sums.rest) += e;
    (key == 0 ? sums.first_slope : sums.slope) += e * below;
    if (t.labels) {
      const int position = t.offset + query;
      if (key < position && t.labels[key] == label) sums.duplicate += weight;
      if (key > 0 && key <= position && t.labels[key - 1] == label) sums.induction += weight;
    }
    if (t.weights) t.weights[(static_cast<Index>(head) * t.n_query + query) * t.n_key + key] = weight;
    if (!s.column) continue;
    add_mass(s.column + static_cast<Index>(head) * t.n_key + key, weight);
    add_mass(s.distance + static_cast<Index>(head) * (t.n_query + t.n_key - 1) + query - key + t.n_key - 1, weight);
    if (s.overview && s.bin > 1)
      raise(
          s.overview + (static_cast<Index>(head) * s.overview_rows + query / s.bin) * s.overview_columns + key / s.bin,
          weight);
  }
  if (stats) leave(sums, room);
  __syncthreads();

  // z: so many threads side by side take the numbers of a value, four each where they can be read together, the others
  // the next keys.
  const int each = t.by_four ? 4 : 1, wanted = (t.d_value + each - 1) / each;
  int across = 1;
  while (across < wanted && across < static_cast<int>(blockDim.x)) across *= 2;
  const int at = threadIdx.x % across, turn = threadIdx.x / across, turns = blockDim.x / across;
  const float* const v = t.v + kv * t.v_head;
  for (int first = 0; first < wanted; first += across) {
    const int column = (first + at) * each;
    float sum[4] = {};
    if (column < t.d_value) {
      if (t.by_four) {
#pragma unroll 8
        for (int key = row.keys.x + turn; key < row.keys.y; key += turns) {
          const float4 four = *reinterpret_cast<const float4*>(v + key * t.v_row + column);
          const float weight = p[key];
          sum[0] += weight * four.x;
          sum[1] += weight * four.y;
          sum[2] += weight * four.z;
          sum[3] += weight * four.w;
        }
      } else {
#pragma unroll 8
        for (int key = row.keys.x + turn; key < row.keys.y; key += turns) sum[0] += p[key] * v[key * t.v_row + column];
      }
    }
    // Of several turns in one warp, then of all.
    for (int other = across; other < 32; other *= 2)
      for (int c = 0; c < each; ++c) sum[c] += __shfl_xor_sync(0xffffffffu, sum[c], other);
    const int shares = across < 32 ? blockDim.x / 32 : turns, mine = across < 32 ? threadIdx.x / 32 : turn;
    __syncthreads();
    if (across >= 32 || static_cast<int>(threadIdx.x % 32) < across)
      for (int c = 0; c < each; ++c) parts[(mine * across + at) * each + c] = sum[c];
    __syncthreads();
    for (int i = threadIdx.x; i < across * each; i += blockDim.x) {
      if (first * each + i >= t.d_value) continue;
      float total = 0;
      for (int other = 0; other < shares; ++other) total += parts[other * across * each + i];
      t.z[query * t.z_row + head * t.z_head + first * each + i] = total;
    }
  }
  if (!stats || threadIdx.x >= 32) return;
  const Sums all = all_of(room);
  if (threadIdx.x == 0) tell(t, head, row, peak, soft, all);
}

}  // namespace

int row_room(int d) {
  constexpr int beside = 256;  // what else a block keeps
  return static_cast<int>(48 * 1024 / sizeof(float)) - beside - d - 4 * most_row_threads;
}

void attention_by_rows(const AttentionTask& task, int rows, cudaStream_t stream) {
  const unsigned int count = rows <= 16 ? most_row_threads : 256;
  const std::size_t bytes = sizeof(float) * (static_cast<std::size_t>(task.d) + 4 * count +
                                             static_cast<std::size_t>(task.scratch ? 0 : task.n_key));
  const dim3 grid(static_cast<unsigned int>(rows), static_cast<unsigned int>(task.heads));
  launch(task.early, rows_kernel, grid, count, bytes, stream, task);
}

}  // namespace headscope::cuda
