#include "core/tensor/gguf_grids.h"

#include <cstddef>

#include "core/tensor/gguf_grid_codes.h"

namespace headscope::stored {

namespace {

consteval std::uint32_t digit(char c) {
  return static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
}

/// Points of so many numbers, each of four digits, apart by four bits as the header says.
template <int numbers, std::size_t size>
consteval std::array<std::uint32_t, size / 4> grid(const char (&digits)[size]) {
  std::array<std::uint32_t, size / 4> points{};
  constexpr int bits = 16 / numbers;
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::uint32_t packed = 0;
    for (std::size_t j = 0; j < 4; ++j) packed = packed << 4 | digit(digits[4 * i + j]);
    for (int j = 0; j < numbers; ++j)
      points[i] |= (packed >> bits * j & ((1u << bits) - 1)) << (8 * (j % 4) + 4 * (j / 4));
  }
  return points;
}

}  // namespace

alignas(64) constinit const std::array<std::uint32_t, 256> iq2_xxs_grid = grid<8>(codes::iq2_xxs);
alignas(64) constinit const std::array<std::uint32_t, 512> iq2_xs_grid = grid<8>(codes::iq2_xs);
alignas(64) constinit const std::array<std::uint32_t, 1024> iq2_s_grid = grid<8>(codes::iq2_s);
alignas(64) constinit const std::array<std::uint32_t, 256> iq3_xxs_grid = grid<4>(codes::iq3_xxs);
alignas(64) constinit const std::array<std::uint32_t, 512> iq3_s_grid = grid<4>(codes::iq3_s);
alignas(64) constinit const std::array<std::uint32_t, 2048> iq1_grid = grid<8>(codes::iq1_s);

}  // namespace headscope::stored
