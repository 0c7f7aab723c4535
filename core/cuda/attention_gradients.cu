#include "core/cuda/attention_gradients.h"

#include "core/cuda/attention_row.cuh"
#include "core/cuda/launch.cuh"

namespace headscope::cuda {
namespace {

using Task = AttentionGradientTask;

constexpr int side = 32;  // rows and columns of a tile
constexpr int warps = 8;
constexpr int threads = 32 * warps;
constexpr int mine = side / warps;      // rows of a tile that are one warp's
constexpr float least_weight = 1e-37f;  // below, ln p says nothing: core/tensor/row_gradients.cpp
constexpr int widest = 256;

/// What is known of a query's row once its scores are: p = e^(s − most) · by; inner = Σ p dP; and of the price of its
/// entropy: slope = −price / S and mean = Σ p ln p / S over all keys but the first, where S is their sum.
struct RowNumbers {
  float most, by, inner, slope, mean;
};
static_assert(sizeof(RowNumbers) == attention_gradient_rows * sizeof(float));

/// Of one cell: its weight, and the gradient of q·k.
struct Cell {
  float p = 0, ds = 0;
};

__device__ inline Cell cell_of(const Task& t, const HeadTerms& h, const Row& row, const RowNumbers& r, int first_key,
                               int key, float dot, float dp) {
  Cell out;
  const float s = score(t.of, h, row, key, dot);
  if (s == -infinity) return out;
  out.p = expf(s - r.most) * r.by;
  if (r.slope != 0 && key != first_key && out.p > least_weight) dp += r.slope * (logf(out.p) - r.mean);
  out.ds = out.p * (dp - r.inner) * h.scale;
  if (h.cap > 0) {
    const float bent = tanhf(h.scale * dot / h.cap);
    out.ds *= 1 - bent * bent;
  }
  return out;
}

/// A tile of rows in shared memory, `width` apart (odd, so that a column of 32 rows meets every bank); 0 beyond `end`.
__device__ inline void load(float* to, int width, const float* from, std::int64_t row, int first, int end, int d) {
  for (int i = threadIdx.x; i < side * d; i += threads) {
    const int r = i / d, c = i % d;
    to[r * width + c] = first + r < end ? from[(first + r) * row + c] : 0.0f;
  }
}

/// This warp's rows of `a` times row `lane` of `b`.
__device__ inline void dots(const float* a, const float* b, int width, int d, float (&out)[mine]) {
#pragma unroll
  for (int r = 0; r < mine; ++r) out[r] = 0;
  const float* const own = b + threadIdx.x % 32 * width;
#pragma unroll 4
  for (int c = 0; c < d; ++c) {
    const float value = own[c];
#pragma unroll
    for (int r = 0; r < mine; ++r) out[r] += a[r * width + c] * value;
  }
}

/// sum[r] += Σ_j by[r][j] · rows[j], columns lane, lane + 32, …
template <int chunks>
__device__ inline void mix(const float* by, const float* rows, int width, int d, float (&sum)[mine][chunks]) {
  const int lane = threadIdx.x % 32;
#pragma unroll 4
  for (int j = 0; j < side; ++j) {
    float value[chunks];
#pragma unroll
    for (int k = 0; k < chunks; ++k) value[k] = lane + 32 * k < d ? rows[j * width + lane + 32 * k] : 0.0f;
#pragma unroll
    for (int r = 0; r < mine; ++r)
#pragma unroll
      for (int k = 0; k < chunks; ++k) sum[r][k] += by[r * side + j] * value[k];
  }
}

template <int chunks>
__device__ inline void put(const Task::Into& into, int head, int row, int end, int d, const float (&sum)[chunks]) {
  if (row >= end) return;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < chunks; ++k) {
    const int c = lane + 32 * k;
    if (c >= d) continue;
    float* const to = into.to + row * into.row + head * into.head + c;
    *to = into.add ? *to + sum[k] : sum[k];
  }
}

__device__ inline int warp_least(int x) {
  for (int lane = 16; lane > 0; lane /= 2) x = min(x, __shfl_xor_sync(0xffffffffu, x, lane));
  return x;
}

/// The hull of 32 ranges, one for each lane.
__device__ inline int2 hull_of(int2 range) {
  const bool none = range.x >= range.y;
  return {warp_least(none ? 0x7fffffff : range.x), -warp_least(none ? 0 : -range.y)};
}

__host__ __device__ inline int row_width(int d, int d_value) {
  return (d > d_value ? d : d_value) | 1;
}

/// A block: 32 queries of one head.
template <int chunks>
__global__ void __launch_bounds__(threads) queries_kernel(Task t) {
  extern __shared__ float room[];
  const AttentionTask& of = t.of;
  const int width = row_width(of.d, of.d_value), tile = side * width;
  float *const q = room, *const d_z = q + tile, *const k = d_z + tile, *const v = k + tile;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, head = blockIdx.y, first = blockIdx.x * side;
  float* const by = v + tile + warp * mine * side;  // ds of this warp's rows
  const int kv = head / (of.heads / of.kv_heads);
  const HeadTerms h = of.head[head];
  const int own = warp * mine;  // of the tile
  const float *const keys = of.k + kv * of.k_head, *const values = of.v + kv * of.v_head;

  load(q, width, of.q + head * of.q_head, of.q_row, first, of.n_query, of.d);
  load(d_z, width, t.d_z + head * t.d_z_head, t.d_z_row, first, of.n_query, of.d_value);
  const int2 hull = hull_of(row_of(of, h, first + lane).keys);

  Row row[mine];
  Peak peak[mine];
  RowNumbers numbers[mine];
  int first_key[mine];
#pragma unroll
  for (int r = 0; r < mine; ++r) {
    const int query = first + own + r;
    row[r] = row_of(of, h, query);
    first_key[r] = query < of.n_query ? t.first_key[query] : -1;
    float inner = 0;
    for (int c = lane; query < of.n_query && c < of.d_value; c += 32)
      inner += t.d_z[query * t.d_z_row + head * t.d_z_head + c] * of.z[query * of.z_row + head * of.z_head + c];
    numbers[r].inner = warp_sum(inner);
  }
  float dot[mine], dp[mine];
  for (int at = hull.x; at < hull.y; at += side) {
    __syncthreads();
    load(k, width, keys, of.k_row, at, of.n_key, of.d);
    __syncthreads();
    dots(q + own * width, k, width, of.d, dot);
#pragma unroll
    for (int r = 0; r < mine; ++r) peak[r].take(score(of, h, row[r], at + lane, dot[r]), at + lane);
  }
#pragma unroll
  for (int r = 0; r < mine; ++r) {
    for (int step = 16; step > 0; step /= 2) peak[r].join(shuffled(peak[r], step));
    const Softmax soft = softmax_of(peak[r], row[r].sink);
    numbers[r].most = soft.most;
    numbers[r].by = soft.by;
    numbers[r].slope = numbers[r].mean = 0;
  }
  if (t.price != 0) {
    float sum[mine] = {}, inner[mine] = {};
    for (int at = hull.x; at < hull.y; at += side) {
      __syncthreads();
      load(k, width, keys, of.k_row, at, of.n_key, of.d);
      __syncthreads();
      dots(q + own * width, k, width, of.d, dot);
#pragma unroll
      for (int r = 0; r < mine; ++r) {
        if (at + lane == first_key[r]) continue;
        const float p = cell_of(t, h, row[r], numbers[r], first_key[r], at + lane, dot[r], 0).p;
        sum[r] += p;
        if (p > least_weight) inner[r] += p * logf(p);
      }
    }
#pragma unroll
    for (int r = 0; r < mine; ++r) {
      const float all = warp_sum(sum[r]), logs = warp_sum(inner[r]);
      if (all > nothing_left) {
        numbers[r].slope = -t.price / all;
        numbers[r].mean = logs / all;
      }
    }
  }
  if (lane < mine && first + own + lane < of.n_query) {
    RowNumbers out = numbers[0];
#pragma unroll
    for (int r = 1; r < mine; ++r)
      if (r == lane) out = numbers[r];
    reinterpret_cast<RowNumbers*>(t.rows)[static_cast<Index>(head) * of.n_query + first + own + lane] = out;
  }
  if (!t.d_q.to) return;

  float sum[mine][chunks] = {};
  for (int at = hull.x; at < hull.y; at += side) {
    __syncthreads();
    load(k, width, keys, of.k_row, at, of.n_key, of.d);
    load(v, width, values, of.v_row, at, of.n_key, of.d_value);
    __syncthreads();
    dots(q + own * width, k, width, of.d, dot);
    dots(d_z + own * width, v, width, of.d_value, dp);
#pragma unroll
    for (int r = 0; r < mine; ++r)
      by[r * side + lane] = cell_of(t, h, row[r], numbers[r], first_key[r], at + lane, dot[r], dp[r]).ds;
    __syncwarp();
    mix<chunks>(by, k, width, of.d, sum);
    __syncwarp();
  }
#pragma unroll
  for (int r = 0; r < mine; ++r) put<chunks>(t.d_q, head, first + own + r, of.n_query, of.d, sum[r]);
}

/// A block: 32 keys of one key head, and all heads that read it.
template <int chunks>
__global__ void __launch_bounds__(threads) keys_kernel(Task t) {
  extern __shared__ float room[];
  const AttentionTask& of = t.of;
  const int width = row_width(of.d, of.d_value), tile = side * width;
  float *const k = room, *const v = k + tile, *const q = v + tile, *const d_z = q + tile;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, kv = blockIdx.y, first = blockIdx.x * side;
  float *const by = d_z + tile + warp * 2 * mine * side, *const weight = by + mine * side;  // [own key][query]
  const int share = of.heads / of.kv_heads, own = warp * mine;

  load(k, width, of.k + kv * of.k_head, of.k_row, first, of.n_key, of.d);
  load(v, width, of.v + kv * of.v_head, of.v_row, first, of.n_key, of.d_value);
  float to_k[mine][chunks] = {}, to_v[mine][chunks] = {}, dot[mine], dp[mine];
  for (int head = kv * share; head < (kv + 1) * share; ++head) {
    const HeadTerms h = of.head[head];
    const int2 none{0, 0};
    const int2 hull =
        hull_of(first + lane < of.n_key ? t.seen_by[static_cast<Index>(h.ranges) * of.n_key + first + lane] : none);
    for (int at = hull.x; at < hull.y; at += side) {
      __syncthreads();
      load(q, width, of.q + head * of.q_head, of.q_row, at, of.n_query, of.d);
      load(d_z, width, t.d_z + head * t.d_z_head, t.d_z_row, at, of.n_query, of.d_value);
      __syncthreads();
      const int query = at + lane;
      const Row row = row_of(of, h, query);
      RowNumbers numbers{};
      int first_key = -1;
      if (query < of.n_query) {
        numbers = reinterpret_cast<const RowNumbers*>(t.rows)[static_cast<Index>(head) * of.n_query + query];
        first_key = t.first_key[query];
      }
      dots(k + own * width, q, width, of.d, dot);
      dots(v + own * width, d_z, width, of.d_value, dp);
#pragma unroll
      for (int r = 0; r < mine; ++r) {
        const Cell cell = cell_of(t, h, row, numbers, first_key, first + own + r, dot[r], dp[r]);
        by[r * side + lane] = cell.ds;
        weight[r * side + lane] = cell.p;
      }
      __syncwarp();
      mix<chunks>(by, q, width, of.d, to_k);
      mix<chunks>(weight, d_z, width, of.d_value, to_v);
      __syncwarp();
    }
  }
#pragma unroll
  for (int r = 0; r < mine; ++r) {
    if (t.d_k.to) put<chunks>(t.d_k, kv, first + own + r, of.n_key, of.d, to_k[r]);
    if (t.d_v.to) put<chunks>(t.d_v, kv, first + own + r, of.n_key, of.d_value, to_v[r]);
  }
}

std::size_t shared_bytes(int d, int d_value) {
  return sizeof(float) * (4 * side * static_cast<std::size_t>(row_width(d, d_value)) + 2 * side * side);
}

template <int chunks>
void run(const Task& t, cudaStream_t stream) {
  const std::size_t bytes = shared_bytes(t.of.d, t.of.d_value);
  const auto tiles = [](int n) { return static_cast<unsigned int>((n + side - 1) / side); };
  if (bytes > 48 * 1024) {
    cudaFuncSetAttribute(queries_kernel<chunks>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    cudaFuncSetAttribute(keys_kernel<chunks>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  }
  const dim3 queries(tiles(t.of.n_query), static_cast<unsigned int>(t.of.heads));
  queries_kernel<chunks><<<queries, threads, bytes, stream>>>(t);
  if (!t.d_k.to && !t.d_v.to) return;
  const dim3 keys(tiles(t.of.n_key), static_cast<unsigned int>(t.of.kv_heads));
  keys_kernel<chunks><<<keys, threads, bytes, stream>>>(t);
}

}  // namespace

bool attention_gradient_takes(int d, int d_value, Room room) {
  return d <= widest && d_value <= widest && shared_bytes(d, d_value) <= room.shared_bytes;
}

void attention_gradient(const AttentionGradientTask& task, cudaStream_t stream) {
  const int most = task.of.d > task.of.d_value ? task.of.d : task.of.d_value;
  if (most <= 32) return run<1>(task, stream);
  if (most <= 64) return run<2>(task, stream);
  if (most <= 128) return run<4>(task, stream);
  run<8>(task, stream);
}

}  // namespace headscope::cuda
