// Queries, keys and values as float16 for the tensor cores. Every head's numbers are scaled by the power of two that
// makes its largest 2^13 or more: then float16 keeps 11 bits of all that are 2^-28 of that or more, and of the others
// as many as matter beside it.

#include "core/cuda/attention_tile.cuh"

namespace headscope::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int at_once = 8;  // loads of a thread, so that they are under way together
constexpr int largest_exponent = 13;

/// One head of queries, keys or values: of the `which`-th of them all.
struct Source {
  const float* data;
  Index row;  // stride
  int rows, width;
};
__device__ Source source(const AttentionTask& t, int which) {
  if (which < t.heads) return {t.q + which * t.q_head, t.q_row, t.n_query, t.d};
  which -= t.heads;
  if (which < t.kv_heads) return {t.k + which * t.k_head, t.k_row, t.n_key, t.d};
  which -= t.kv_heads;
  return {t.v + which * t.v_head, t.v_row, t.n_key, t.d_value};
}

__global__ void __launch_bounds__(threads) largest_kernel(const AttentionTask t, const TileRoom room) {
  const Source from = source(t, blockIdx.y);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float largest = 0;
  for (int at = lane; at < from.width; at += 32)
    for (int row = blockIdx.x * warps + warp; row < from.rows; row += at_once * largest_parts * warps) {
      float x[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        const int one = row + i * largest_parts * warps;
        x[i] = one < from.rows ? fabsf(__ldg(from.data + one * from.row + at)) : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i) largest = x[i] < infinity ? fmaxf(largest, x[i]) : largest;
    }
  __shared__ float of_warp[warps];
  largest = warp_largest(largest);
  if (lane == 0) of_warp[warp] = largest;
  __syncthreads();
  if (warp > 0) return;
  largest = warp_largest(lane < warps ? of_warp[lane] : 0.0f);
  if (lane == 0) room.largest[blockIdx.y * largest_parts + blockIdx.x] = largest;
}

/// What the queries of a tile see.
__device__ int4 span_of(const AttentionTask& t, int head, int first, int side) {
  int4 span = make_int4(t.n_key, 0, 0, t.n_key);
  for (int query = first + static_cast<int>(threadIdx.x); query < min(first + side, t.n_query); query += 32) {
    const int2 keys = t.ranges[static_cast<Index>(t.head[head].ranges) * t.n_query + query];
    if (keys.x < keys.y) {
      span.x = min(span.x, keys.x);
      span.y = max(span.y, keys.y);
    }
    span.z = max(span.z, keys.x);
    span.w = min(span.w, keys.y);
  }
  for (int other = 16; other > 0; other /= 2) {
    span.x = min(span.x, __shfl_xor_sync(0xffffffffu, span.x, other));
    span.y = max(span.y, __shfl_xor_sync(0xffffffffu, span.y, other));
    span.z = max(span.z, __shfl_xor_sync(0xffffffffu, span.z, other));
    span.w = min(span.w, __shfl_xor_sync(0xffffffffu, span.w, other));
  }
  return span;
}

template <int D>
__global__ void __launch_bounds__(threads) round_kernel(const AttentionTask t, const TileRoom room) {
  constexpr int side = side_of<D>;
  const int which = blockIdx.y, first = blockIdx.x * side;
  const bool of_queries = which < t.heads, of_keys = !of_queries && which < t.heads + t.kv_heads;
  const Halves to = of_queries ? room.q : of_keys ? room.k : room.v;
  if (first >= to.rows) return;
  const Source from = source(t, which);
  const int head = of_queries ? which : (which - t.heads) % t.kv_heads;

  const float largest = warp_largest(room.largest[which * largest_parts + threadIdx.x % largest_parts]);
  const int exponent = largest > 0 ? min(largest_exponent + 127 - (__float_as_int(largest) >> 23), 126) : 0;
  const float by = __int_as_float((127 + exponent) << 23);  // 2^exponent
  if (first == 0 && threadIdx.x == 0) room.unit[which] = __int_as_float((127 - exponent) << 23);

  auto* const pairs = reinterpret_cast<unsigned int*>(to.data + (head * to.rows + first) * D);
  constexpr int count = side * D / 2 / threads;  // pairs of a thread
  float2 x[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int own = i * threads + threadIdx.x, row = first + own / (D / 2), at = own % (D / 2) * 2;
    const float* const pair = from.data + row * from.row + at;
    x[i].x = row < from.rows && at < from.width ? __ldg(pair) : 0.0f;
    x[i].y = row < from.rows && at + 1 < from.width ? __ldg(pair + 1) : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const Pair<true> pair(by * x[i].x, by * x[i].y);
    pairs[i * threads + threadIdx.x] = pair.high;
    if (t.exact) pairs[to.part / 2 + i * threads + threadIdx.x] = pair.low;
  }

  if (of_queries && threadIdx.x < 32) {
    const int4 span = span_of(t, head, first, side);
    if (threadIdx.x == 0) room.spans[head * room.tiles + blockIdx.x] = span;
  }
  if (which == t.heads && t.labels)
    for (int i = first == 0 ? threadIdx.x : threadIdx.x + 4; i < side + 4; i += threads) {
      const int key = first + i - 4;
      room.labels[first + i] = key >= 0 && key < t.n_key ? t.labels[key] : -1;
    }
}

template <int D>
void round_all(const AttentionTask& task, const TileRoom& room, cudaStream_t stream) {
  const Index rows = room.q.rows > room.k.rows ? room.q.rows : room.k.rows;
  const dim3 grid(static_cast<unsigned int>(rows / side_of<D>),
                  static_cast<unsigned int>(task.heads + 2 * task.kv_heads));
  round_kernel<D><<<grid, threads, 0, stream>>>(task, room);
}

}  // namespace

void make_operands(const AttentionTask& task, const TileRoom& room, int width, cudaStream_t stream) {
  const dim3 grid(largest_parts, static_cast<unsigned int>(task.heads + 2 * task.kv_heads));
  largest_kernel<<<grid, threads, 0, stream>>>(task, room);
  if (width <= 32)
    round_all<32>(task, room, stream);
  else if (width <= 64)
    round_all<64>(task, room, stream);
  else
    round_all<128>(task, room, stream);
}

}  // namespace headscope::cuda
