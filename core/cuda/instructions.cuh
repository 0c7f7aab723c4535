#pragma once
// Instructions of the card that C++ has no words for. Private to core/cuda.

#include <cuda_runtime.h>

#include <utility>

namespace headscope::cuda {

__device__ inline unsigned int cut(float x) {
  unsigned int out;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
  return out;
}

/// sum (16 × 8) += a (16 × 8) · b (8 × 8), shared out over a warp as the instruction has it: with g = lane / 4 and
/// t = lane % 4, a: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4); b: (t, g), (t + 4, g); sum: (g, 2t), (g, 2t + 1),
/// (g + 8, 2t), (g + 8, 2t + 1).
__device__ inline void multiply_add(float sum[4], const unsigned int a[4], unsigned int b0, unsigned int b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Has a line of memory brought into the card's second cache.
__device__ inline void prefetch(const void* from) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

/// In a kernel that was started early: waits until what stands before it in the stream is done. Nothing that others
/// write may be read before, and nothing be written.
__device__ inline void wait_for_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// From here on the next kernel may start early.
__device__ inline void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// kernel(arguments…). `early`: while the kernel before still runs, where that lets it; it must wait_for_before().
template <class... Parameters, class... Arguments>
void launch(bool early, void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
            Arguments&&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace headscope::cuda
