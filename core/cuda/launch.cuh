#pragma once
// What kernels share: one thread for every number, and sums and maxima over the lanes of a warp. Private to core/cuda.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace headscope::cuda {

using Index = std::int64_t;

constexpr int block = 256;
constexpr int most_blocks = 132 * 16;

inline int blocks_for(Index n) {
  const Index blocks = (n + block - 1) / block;
  return static_cast<int>(blocks < most_blocks ? blocks : most_blocks);
}

template <class F>
__global__ void each_kernel(Index n, F f) {
  for (Index i = blockIdx.x * static_cast<Index>(blockDim.x) + threadIdx.x; i < n;
       i += static_cast<Index>(gridDim.x) * blockDim.x)
    f(i);
}

/// f(i) for every i in [0, n).
template <class F>
void each(Index n, cudaStream_t stream, F f) {
  if (n > 0) each_kernel<<<blocks_for(n), block, 0, stream>>>(n, f);
}

template <class T>
__device__ inline T warp_sum(T x) {
  for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
  return x;
}
__device__ inline float warp_max(float x) {
  for (int lane = 16; lane > 0; lane /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lane));
  return x;
}

}  // namespace headscope::cuda
