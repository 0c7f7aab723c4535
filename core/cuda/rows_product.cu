#include <cuda_bf16.h>

#include "core/cuda/curve.cuh"
#include "core/cuda/instructions.cuh"
#include "core/cuda/rows_product.h"

namespace headscope::cuda {
namespace {

constexpr int threads = 256;
constexpr int strip = 64;    // columns of a block: 16 lanes of 4
constexpr int k_lanes = 16;  // threads of a block that share a strip's rows
constexpr int wanted_blocks = 264;
constexpr int most_normed = 4096;  // numbers of normed rows that a block keeps

int splits_of(Index in, Index columns) {
  const Index strips = (columns + strip - 1) / strip;
  Index splits = (wanted_blocks + strips - 1) / strips;
  const Index most = in / (4 * k_lanes);  // fewer rows would not be worth a block
  if (splits > most) splits = most;
  return static_cast<int>(splits < 1 ? 1 : splits);
}

__device__ inline float4 four(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
__device__ inline float4 four(const __nv_bfloat16* from) {
  const uint2 bits = *reinterpret_cast<const uint2*>(from);
  return make_float4(__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000u),
                     __uint_as_float(bits.y << 16), __uint_as_float(bits.y & 0xffff0000u));
}
__device__ inline float one(const float* from) {
  return *from;
}
__device__ inline float one(const __nv_bfloat16* from) {
  return __bfloat162float(*from);
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
    share[r] = 0;
    for (int warp = 0; warp < threads / 32; ++warp) share[r] += room[warp][r];
  }
}

/// Rows of x from `begin` to `end`, normed, into `to` [row][end − begin]. Every block of a strip needs the whole rows.
template <int rows>
__device__ void norm_rows(const RowsProduct& p, Index begin, Index end, float* to) {
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
  for (Index i = begin + threadIdx.x; i < end; i += threads)
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const float value = (p.x[r * p.row_stride + i] - mean[r]) * by[r] * p.gain[i] + (p.shift ? p.shift[i] : 0.0f);
      to[r * (end - begin) + i - begin] = value;
      if (blockIdx.x == 0) p.normed[r * p.in + i] = value;
    }
  __syncthreads();
}

template <int rows, class W, bool normed>
__global__ void __launch_bounds__(threads)
    rows_product_kernel(const RowsProduct p, float* partial, unsigned int* arrived) {
  __shared__ float sums[k_lanes][rows][strip + 4];
  __shared__ float kept[normed ? most_normed : 1];
  __shared__ bool last;
  const W* const w = static_cast<const W*>(p.w);
  const Index in = p.in, columns = p.columns;
  const int lane = threadIdx.x % 16, k_lane = threadIdx.x / 16;
  const Index column = blockIdx.x * static_cast<Index>(strip) + lane * 4;
  const int splits = gridDim.y;
  const Index begin = in * blockIdx.y / splits, end = in * (blockIdx.y + 1) / splits;
  let_next_start();
  constexpr Index line = 128 / sizeof(W);  // weights of a line of the cache
  for (Index i = threadIdx.x; i < (end - begin) * (strip / line); i += threads) {
    const Index at = blockIdx.x * static_cast<Index>(strip) + i % (strip / line) * line;
    if (at < columns) prefetch(w + (begin + i / (strip / line)) * columns + at);
  }
  wait_for_before();
  if (normed) norm_rows<rows>(p, begin, end, kept);

  float sum[rows][4] = {};
  const bool whole = column + 4 <= columns && columns % 4 == 0;
#pragma unroll 8
  for (Index k = begin + k_lane; k < end; k += k_lanes) {
    float4 weight = make_float4(0, 0, 0, 0);
    const W* const from = w + k * columns + column;
    if (whole)
      weight = four(from);
    else if (column < columns) {
      weight.x = one(from);
      if (column + 1 < columns) weight.y = one(from + 1);
      if (column + 2 < columns) weight.z = one(from + 2);
      if (column + 3 < columns) weight.w = one(from + 3);
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const float value = normed ? kept[r * (end - begin) + k - begin] : p.x[r * p.row_stride + k];
      sum[r][0] += value * weight.x;
      sum[r][1] += value * weight.y;
      sum[r][2] += value * weight.z;
      sum[r][3] += value * weight.w;
    }
  }
#pragma unroll
  for (int r = 0; r < rows; ++r)
#pragma unroll
    for (int c = 0; c < 4; ++c) sums[k_lane][r][lane * 4 + c] = sum[r][c];
  __syncthreads();
  const int my_row = threadIdx.x / strip, my_column = threadIdx.x % strip;  // 256 threads: up to 4 rows
  const Index at = blockIdx.x * static_cast<Index>(strip) + my_column;
  const bool mine = my_row < rows && at < columns;
  float total = 0;
  if (mine)
    for (int k = 0; k < k_lanes; ++k) total += sums[k][my_row][my_column];
  if (splits > 1) {
    if (mine) partial[(static_cast<Index>(blockIdx.y) * rows + my_row) * columns + at] = total;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(arrived + blockIdx.x, 1u) == static_cast<unsigned int>(splits - 1);
    __syncthreads();
    if (!last) return;
    __threadfence();
    total = 0;  // in order, so that the sum does not depend on who came last
    if (mine)
      for (int s = 0; s < splits; ++s)
        total += __ldcg(partial + (static_cast<Index>(s) * rows + my_row) * columns + at);
    if (threadIdx.x == 0) arrived[blockIdx.x] = 0;
  }
  if (!mine) return;
  const float value = total + (p.bias ? p.bias[at] : 0.0f);
  const Index cell = my_row * columns + at;
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

bool norm_goes_along(Index rows, Index in, Index columns) {
  const int splits = splits_of(in, columns);
  return rows * ((in + splits - 1) / splits) <= most_normed;
}

std::size_t rows_product_scratch(Index in, Index columns) {
  return wanted_blocks * sizeof(unsigned int) +
         static_cast<std::size_t>(splits_of(in, columns) * few_rows * columns) * sizeof(float);
}

void rows_product(const RowsProduct& task, void* scratch, bool early, cudaStream_t stream) {
  const Index strips = (task.columns + strip - 1) / strip;
  const dim3 grid(static_cast<unsigned int>(strips), static_cast<unsigned int>(splits_of(task.in, task.columns)));
  auto* const arrived = static_cast<unsigned int*>(scratch);
  auto* const partial = reinterpret_cast<float*>(arrived + wanted_blocks);  // with more strips none is split
  const auto run = [&](auto kernel) { launch(early, kernel, grid, threads, 0, stream, task, partial, arrived); };
  if (task.half)
    task.gain ? of_rows<__nv_bfloat16, true>(task.rows, run) : of_rows<__nv_bfloat16, false>(task.rows, run);
  else
    task.gain ? of_rows<float, true>(task.rows, run) : of_rows<float, false>(task.rows, run);
}

}  // namespace headscope::cuda
