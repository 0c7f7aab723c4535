#pragma once
// In the place of core/cuda/instructions.cuh, on the emulated card: the same in C++.

#include <cstddef>

namespace headscope::cuda {

inline float number_of_half(unsigned short bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}
inline unsigned int pack_halves(float lower, float upper) {
  const _Float16 two[2] = {static_cast<_Float16>(lower), static_cast<_Float16>(upper)};
  return std::bit_cast<unsigned int>(two);
}
inline float lower_half(unsigned int pair) {
  return number_of_half(static_cast<unsigned short>(pair & 0xffff));
}
inline float upper_half(unsigned int pair) {
  return number_of_half(static_cast<unsigned short>(pair >> 16));
}

/// Sums in float64, rounded once: the card's own order is not told.
inline void multiply_add_halves(float sum[4], const unsigned int a[4], unsigned int b0, unsigned int b1) {
  struct Mine {
    unsigned int a[4], b[2];
  } mine{{a[0], a[1], a[2], a[3]}, {b0, b1}};
  const emulator::Slots all = emulator::exchange(&mine, sizeof mine);
  const int g = emulator::now->lane / 4, t = emulator::now->lane % 4;
  const auto half = [](unsigned int pair, int which) { return which == 0 ? lower_half(pair) : upper_half(pair); };
  for (int c = 0; c < 4; ++c) {
    const int late_row = c / 2, column = 2 * t + c % 2;
    double products = 0;
    for (int k = 0; k < 16; ++k) {
      const int lane = k % 8 / 2, late = k / 8;
      const auto left = emulator::read<Mine>(all, 4 * g + lane), right = emulator::read<Mine>(all, 4 * column + lane);
      products += static_cast<double>(half(left.a[2 * late + late_row], k % 2)) *
                  static_cast<double>(half(right.b[late], k % 2));
    }
    sum[c] = static_cast<float>(static_cast<double>(sum[c]) + products);
  }
}

template <bool turned>
void load_four(unsigned int out[4], const void* row) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) std::abort();  // as on the card
  const emulator::Slots all = emulator::exchange(&row, sizeof row);
  const int g = emulator::now->lane / 4, t = emulator::now->lane % 4;
  for (int matrix = 0; matrix < 4; ++matrix) {
    unsigned short two[2];
    for (int c = 0; c < 2; ++c) {
      const int line = turned ? 2 * t + c : g, column = turned ? g : 2 * t + c;
      std::memcpy(&two[c], emulator::read<const char*>(all, 8 * matrix + line) + 2 * column, 2);
    }
    out[matrix] = std::bit_cast<unsigned int>(two);
  }
}
inline void load_matrices(unsigned int out[4], const void* row) {
  load_four<false>(out, row);
}
inline void load_matrices_turned(unsigned int out[4], const void* row) {
  load_four<true>(out, row);
}

inline void copy_async16(void* shared, const void* global, bool valid) {
  if (valid)
    std::memcpy(shared, global, 16);
  else
    std::memset(shared, 0, 16);
}
inline void commit_copies() {}
template <int N>
void wait_copies() {}

inline float exp2_approx(float x) {
  return std::exp2(x);
}
inline void prefetch(const void*) {}
inline void wait_for_before() {}
inline void let_next_start() {}

template <class... Parameters, class... Arguments>
void launch(bool, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t bytes, cudaStream_t,
            Arguments&&... arguments) {
  emulator::launch({grid, block, bytes}, [&] { kernel(arguments...); });
}

}  // namespace headscope::cuda
