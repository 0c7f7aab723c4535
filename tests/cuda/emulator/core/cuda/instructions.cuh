#pragma once
// In the place of core/cuda/instructions.cuh, on the emulated card: the same in C++.

#include <array>
#include <cstddef>

namespace headscope::cuda {

/// All that there are: where the compiler has to convert by a function, a product would be nothing else.
inline const std::array<float, 65536> numbers_of_halves = [] {
  std::array<float, 65536> out;
  for (std::size_t bits = 0; bits < out.size(); ++bits)
    out[bits] = static_cast<float>(std::bit_cast<_Float16>(static_cast<unsigned short>(bits)));
  return out;
}();
inline float number_of_half(unsigned short bits) {
  return numbers_of_halves[bits];
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
  float mine[12];  // what this lane has of a, then of b
  for (int i = 0; i < 6; ++i) {
    const unsigned int pair = i < 4 ? a[i] : i == 4 ? b0 : b1;
    mine[2 * i] = lower_half(pair);
    mine[2 * i + 1] = upper_half(pair);
  }
  const emulator::Slots all = emulator::exchange(mine, sizeof mine);
  const auto of = [all](int lane, int which) {
    float out;
    std::memcpy(&out, all[lane] + sizeof out * static_cast<std::size_t>(which), sizeof out);
    return static_cast<double>(out);
  };
  const int g = emulator::now->lane / 4, t = emulator::now->lane % 4;
  for (int c = 0; c < 4; ++c) {
    const int late_row = c / 2, column = 2 * t + c % 2;
    double products = 0;
    for (int k = 0; k < 16; ++k) {
      const int lane = k % 8 / 2, late = k / 8;
      products += of(4 * g + lane, 2 * (2 * late + late_row) + k % 2) * of(4 * column + lane, 8 + 2 * late + k % 2);
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
