#pragma once
// Instructions of the card that C++ has no words for. Private to core/cuda.

#include <cuda_runtime.h>

#include <utility>

namespace headscope::cuda {

/// Two numbers rounded to float16, side by side in one register.
__device__ inline unsigned int pack_halves(float lower, float upper) {
  unsigned int out;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(upper), "f"(lower));
  return out;
}
__device__ inline float lower_half(unsigned int pair) {
  float out;
  asm("{.reg .b16 lower, upper; mov.b32 {lower, upper}, %1; cvt.f32.f16 %0, lower;}" : "=f"(out) : "r"(pair));
  return out;
}
__device__ inline float upper_half(unsigned int pair) {
  float out;
  asm("{.reg .b16 lower, upper; mov.b32 {lower, upper}, %1; cvt.f32.f16 %0, upper;}" : "=f"(out) : "r"(pair));
  return out;
}

/// sum (16 × 8) += a (16 × 16) · b (16 × 8), a and b of float16, shared out over a warp as the instruction has it: with
/// g = lane / 4 and t = lane % 4, a: (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), each with its right neighbour;
/// b: (2t, g), (2t + 8, g), each with the one below; sum: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
__device__ inline void multiply_add_halves(float sum[4], const unsigned int a[4], unsigned int b0, unsigned int b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Four 8 × 8 matrices of float16 from shared memory. Lane l says where row l % 8 of matrix l / 8 begins; of each
/// matrix it gets (g, 2t) and (g, 2t + 1).
__device__ inline void load_matrices(unsigned int out[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(static_cast<unsigned int>(__cvta_generic_to_shared(row)))
               : "memory");
}
/// Likewise, but it gets (2t, g) and (2t + 1, g).
__device__ inline void load_matrices_turned(unsigned int out[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(static_cast<unsigned int>(__cvta_generic_to_shared(row)))
               : "memory");
}

/// 16 bytes into shared memory while the thread goes on; zeros where `valid` says that there are none.
__device__ inline void copy_async16(void* shared, const void* global, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned int>(__cvta_generic_to_shared(shared))),
               "l"(global), "r"(valid ? 16 : 0)
               : "memory");
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Until no more than the last N groups of this thread's copies are under way.
template <int N>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/// 2^x to 2 units of 24 bits; 0 where that is below 2⁻¹²⁶.
__device__ inline float exp2_approx(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
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
void launch(bool early, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace headscope::cuda
