#include <cuda_bf16.h>

#include "core/cuda/curve.cuh"
#include "core/cuda/instructions.cuh"
#include "core/cuda/rows_product.h"

namespace headscope::cuda {
namespace {

constexpr int threads = 1024;
constexpr int lanes = 4;  // threads side by side, each with 16 bytes of a row of weights
constexpr int k_lanes = threads / lanes;
constexpr int most_normed = 6144;  // numbers of normed rows that a block keeps
template <class W>
constexpr int each_of = 16 / sizeof(W);
template <class W>
constexpr int strip_of = lanes * each_of<W>;  // columns of a block

__device__ inline void read(const float* from, float to[4]) {
  const float4 x = *reinterpret_cast<const float4*>(from);
  to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
}
__device__ inline void read(const __nv_bfloat16* from, float to[8]) {
  const uint4 x = *reinterpret_cast<const uint4*>(from);
  const unsigned int pairs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = __uint_as_float(pairs[i] << 16);
    to[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
  }
}

/// The sums over a block of every row's share, in a fixed order.
template <int rows>
__device__ void sum_up(float share[rows], float (*room)[rows]) {
#pragma unroll
  for (int r = 0; r < rows; ++r)
    for (int lane = 16; lane > 0; lane /= 2) share[r] += __shfl_xor_sync(0xffffffffu, share[r], lane);
  __syncthreads();
  if (threadIdx.x % 32 == 0)
    for (int r = 0; r < rows; ++r) room[threadIdx.x / 32][r] = share[r];
  __syncthreads();
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    share[r] = room[threadIdx.x % 32][r];
    for (int lane = 16; lane > 0; lane /= 2) share[r] += __shfl_xor_sync(0xffffffffu, share[r], lane);
  }
}

/// Rows of x, normed, into `to` [row][in].
template <int rows>
__device__ void norm_rows(const RowsProduct& p, float* to) {
  __shared__ float room[threads / 32][rows];
  constexpr int held = 4;  // numbers of a row that a thread need not read again
  const auto width = static_cast<float>(p.in);
  float x[rows][held] = {}, mean[rows] = {}, by[rows] = {};
#pragma unroll
  for (int k = 0; k < held; ++k)
    if (const Index i = threadIdx.x + k * threads; i < p.in)
#pragma unroll
      for (int r = 0; r < rows; ++r) x[r][k] = p.x[r * p.row_stride + i];
  if (p.shift) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      for (int k = 0; k < held; ++k) mean[r] += x[r][k];
      for (Index i = threadIdx.x + held * threads; i < p.in; i += threads) mean[r] += p.x[r * p.row_stride + i];
    }
    sum_up<rows>(mean, room);
#pragma unroll
    for (int r = 0; r < rows; ++r) mean[r] /= width;
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const auto add = [&](float value) { by[r] += (value - mean[r]) * (value - mean[r]); };
#pragma unroll
    for (int k = 0; k < held; ++k)
      if (threadIdx.x + k * threads < p.in) add(x[r][k]);
    for (Index i = threadIdx.x + held * threads; i < p.in; i += threads) add(p.x[r * p.row_stride + i]);
  }
  sum_up<rows>(by, room);
#pragma unroll
  for (int r = 0; r < rows; ++r) by[r] = 1.0f / sqrtf(by[r] / width + p.epsilon);
  for (Index i = threadIdx.x; i < p.in; i += threads)
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const float value = (p.x[r * p.row_stride + i] - mean[r]) * by[r] * p.gain[i] + (p.shift ? p.shift[i] : 0.0f);
      to[r * p.in + i] = value;
      if (blockIdx.x == 0) p.normed[r * p.in + i] = value;
    }
  __syncthreads();
}

template <int rows, class W, bool normed>
__global__ void __launch_bounds__(threads) rows_product_kernel(const RowsProduct p) {
  constexpr int each = each_of<W>, strip = strip_of<W>;
  __shared__ float sums[threads / 32][rows][strip];
  __shared__ float kept[normed ? most_normed : 1];
  const int lane = threadIdx.x % lanes;
  const Index first = blockIdx.x * static_cast<Index>(strip), column = first + lane * each;
  const W* const w = static_cast<const W*>(p.w);
  let_next_start();
  for (Index k = threadIdx.x; k < p.in; k += threads) prefetch(w + k * p.w_stride + first);
  wait_for_before();
  if (normed) norm_rows<rows>(p, kept);

  float sum[rows][each] = {};
  if (column < p.w_stride)
#pragma unroll(rows <= 2 ? 4 : 2)
    for (Index k = threadIdx.x / lanes; k < p.in; k += k_lanes) {
      float weight[each];
      read(w + k * p.w_stride + column, weight);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const float value = normed ? kept[r * p.in + k] : p.x[r * p.row_stride + k];
#pragma unroll
        for (int c = 0; c < each; ++c) sum[r][c] += value * weight[c];
      }
    }
#pragma unroll
  for (int r = 0; r < rows; ++r)
#pragma unroll
    for (int c = 0; c < each; ++c) {
      for (int other = lanes; other < 32; other *= 2) sum[r][c] += __shfl_xor_sync(0xffffffffu, sum[r][c], other);
      if (threadIdx.x % 32 < lanes) sums[threadIdx.x / 32][r][lane * each + c] = sum[r][c];
    }
  __syncthreads();
  const int row = threadIdx.x / strip;
  const Index at = first + threadIdx.x % strip;
  if (row >= rows || at >= p.columns) return;
  float value = 0;
#pragma unroll 8
  for (int warp = 0; warp < threads / 32; ++warp) value += sums[warp][row][threadIdx.x % strip];
  if (p.bias) value += p.bias[at];
  const Index cell = row * p.columns + at;
  p.out[cell] = value;
  if (p.sum) p.sum[cell] = value + p.more[cell];
  if (p.curved) p.curved[cell] = bent(p.curve, value);
}

template <class W, bool normed, class Run>
void of_rows(Index rows, Run run) {
  switch (rows) {
    case 1:
      return run(rows_product_kernel<1, W, normed>);
    case 2:
      return run(rows_product_kernel<2, W, normed>);
    case 3:
      return run(rows_product_kernel<3, W, normed>);
    default:
      return run(rows_product_kernel<4, W, normed>);
  }
}

}  // namespace

bool norm_goes_along(Index rows, Index in) {
  return rows * in <= most_normed;
}

void rows_product(const RowsProduct& task, bool early, cudaStream_t stream) {
  const auto strip = static_cast<Index>(task.half ? strip_of<__nv_bfloat16> : strip_of<float>);
  const dim3 grid(static_cast<unsigned int>((task.columns + strip - 1) / strip));
  const auto run = [&](auto kernel) { launch(early, kernel, grid, threads, 0, stream, task); };
  if (task.half)
    task.gain ? of_rows<__nv_bfloat16, true>(task.rows, run) : of_rows<__nv_bfloat16, false>(task.rows, run);
  else
    task.gain ? of_rows<float, true>(task.rows, run) : of_rows<float, false>(task.rows, run);
}

}  // namespace headscope::cuda
