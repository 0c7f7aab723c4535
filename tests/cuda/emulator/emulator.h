#pragma once
// A card on the processor, for tests of its kernels where there is none: in front of every .cu file, whose launches and
// shared memory are rewritten (CMakeLists.txt), this makes C++ of the rest. One block runs at a time, its threads are
// fibers that take turns at barriers and wherever the lanes of a warp exchange numbers. What it cannot see: races, and
// anything about time.

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

namespace emulator {

struct Thread {
  void* stack_pointer = nullptr;
  bool done = false;
  enum class Wait { none, warp, block } wait = Wait::none;
  unsigned int generation = 0;  // of the barrier it waits at
  uint3 index;
  int warp, lane;
};
extern Thread* now;
extern uint3 block_index;
extern dim3 block_size, grid_size;

struct Grid {
  Grid(dim3 blocks, dim3 threads, std::size_t shared = 0, cudaStream_t = nullptr)
      : blocks(blocks), threads(threads), shared(shared) {}
  dim3 blocks, threads;
  std::size_t shared;
};
/// The body in every thread of every block, before it returns. Aborts, with a line that says why, where threads wait
/// for each other for ever, ask for more than a card has, or write behind their shared memory.
void launch(const Grid& grid, const std::function<void()>& body);
char* shared_memory();
void wait_for_warp();
void wait_for_block();

constexpr std::size_t most_exchanged = 64;
using Slots = char (*)[most_exchanged];
/// What every lane of this warp leaves there, by lane.
Slots exchange(const void* mine, std::size_t bytes);

template <class T>
T read(Slots slots, int lane) {
  T out;
  std::memcpy(&out, slots[lane], sizeof out);
  return out;
}
template <class T>
T from_lane(T mine, int lane) {
  return read<T>(exchange(&mine, sizeof mine), lane);
}

}  // namespace emulator

#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __shared__
#define __shared__ static
#define threadIdx (emulator::now->index)
#define blockIdx (emulator::block_index)
#define blockDim (emulator::block_size)
#define gridDim (emulator::grid_size)
#define __syncthreads() emulator::wait_for_block()

inline void __syncwarp(unsigned int = 0xffffffffu) {
  emulator::wait_for_warp();
}
inline void __threadfence() {}
template <class T>
T __ldg(const T* from) {
  return *from;
}
template <class T>
T __ldcg(const T* from) {
  return *from;
}
template <class T>
T __shfl_xor_sync(unsigned int, T x, int mask) {
  return emulator::from_lane(x, emulator::now->lane ^ mask);
}
template <class T>
T __shfl_sync(unsigned int, T x, int lane) {
  return emulator::from_lane(x, lane & 31);
}
template <class T>
T __shfl_down_sync(unsigned int, T x, int by) {
  return emulator::from_lane(x, std::min(emulator::now->lane + by, 31));
}
template <class T>
T __shfl_up_sync(unsigned int, T x, int by) {
  return emulator::from_lane(x, std::max(emulator::now->lane - by, 0));
}
inline unsigned int __ballot_sync(unsigned int, int holds) {
  const emulator::Slots all = emulator::exchange(&holds, sizeof holds);
  unsigned int out = 0;
  for (int lane = 0; lane < 32; ++lane) out |= emulator::read<int>(all, lane) ? 1u << lane : 0u;
  return out;
}
inline int __any_sync(unsigned int mask, int holds) {
  return __ballot_sync(mask, holds) != 0;
}
inline int __all_sync(unsigned int mask, int holds) {
  return __ballot_sync(mask, holds) == 0xffffffffu;
}
inline unsigned int __reduce_max_sync(unsigned int, unsigned int x) {
  const emulator::Slots all = emulator::exchange(&x, sizeof x);
  for (int lane = 0; lane < 32; ++lane) x = std::max(x, emulator::read<unsigned int>(all, lane));
  return x;
}
template <class T, class U>
T atomicAdd(T* to, U value) {
  return std::exchange(*to, *to + static_cast<T>(value));
}
template <class T, class U>
T atomicMax(T* to, U value) {
  return std::exchange(*to, std::max(*to, static_cast<T>(value)));
}
template <class T, class U>
T atomicMin(T* to, U value) {
  return std::exchange(*to, std::min(*to, static_cast<T>(value)));
}
inline unsigned int __float_as_uint(float x) {
  return std::bit_cast<unsigned int>(x);
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline float __uint_as_float(unsigned int x) {
  return std::bit_cast<float>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned int>(x));
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float normcdff(float x) {
  return 0.5f * std::erfc(-x * 0.70710678f);
}
inline float rsqrtf(float x) {
  return 1 / std::sqrt(x);
}
template <class T, class U>
auto min(T a, U b) {
  return a < b ? a : b;
}
template <class T, class U>
auto max(T a, U b) {
  return a > b ? a : b;
}
using std::isfinite;
using std::isinf;
using std::isnan;
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
