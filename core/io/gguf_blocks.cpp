#include "core/io/gguf_blocks.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/base/half.h"

namespace headscope::gguf_blocks {

namespace {

int byte(const std::byte* from, std::size_t at) {
  return std::to_integer<int>(from[at]);
}
int low(const std::byte* from, std::size_t at) {
  return byte(from, at) & 15;
}
int high(const std::byte* from, std::size_t at) {
  return byte(from, at) >> 4;
}
float half(const std::byte* from) {
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return half_to_float(bits);
}
float value(int whole) {
  return static_cast<float>(whole);
}

/// The 6-bit scale and smallest value of group `i` of 8, packed into 12 bytes: 4 of scales, 4 of smallest values, whose
/// upper two bits belong to the last four groups, and 4 with the lower halves of those.
struct Group {
  int scale, least;
};
Group group(const std::byte* packed, std::size_t i) {
  if (i < 4) return {byte(packed, i) & 63, byte(packed, i + 4) & 63};
  return {low(packed, i + 4) | byte(packed, i - 4) >> 6 << 4, high(packed, i + 4) | byte(packed, i) >> 6 << 4};
}

/// 32 numbers as places in `table`, of 4 bits each, the first 16 in the lower halves.
void from_table(const std::array<std::int8_t, 16>& table, float scale, const std::byte* places, float* to) {
  for (std::size_t j = 0; j < 16; ++j) {
    to[j] = scale * value(table[static_cast<std::size_t>(low(places, j))]);
    to[j + 16] = scale * value(table[static_cast<std::size_t>(high(places, j))]);
  }
}

/// The 2 bits of number i of 256: 32 bytes hold 128 of them, each those of four numbers 32 apart.
int two_bits(const std::byte* from, std::size_t i) {
  return byte(from, i / 128 * 32 + i % 32) >> 2 * (i % 128 / 32) & 3;
}

/// Bit j of the 32 at `from`.
int bit(const std::byte* from, std::size_t j) {
  return byte(from, j / 8) >> (j % 8) & 1;
}

}  // namespace

void q4_0(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 18, to += 32) {
    const float d = half(from);
    for (std::size_t j = 0; j < 16; ++j) {
      to[j] = d * value(low(from, 2 + j) - 8);
      to[j + 16] = d * value(high(from, 2 + j) - 8);
    }
  }
}

void q4_1(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 20, to += 32) {
    const float d = half(from), m = half(from + 2);
    for (std::size_t j = 0; j < 16; ++j) {
      to[j] = d * value(low(from, 4 + j)) + m;
      to[j + 16] = d * value(high(from, 4 + j)) + m;
    }
  }
}

void q5_0(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 22, to += 32) {
    const float d = half(from);
    for (std::size_t j = 0; j < 16; ++j) {
      to[j] = d * value((low(from, 6 + j) | bit(from + 2, j) << 4) - 16);
      to[j + 16] = d * value((high(from, 6 + j) | bit(from + 2, j + 16) << 4) - 16);
    }
  }
}

void q5_1(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 24, to += 32) {
    const float d = half(from), m = half(from + 2);
    for (std::size_t j = 0; j < 16; ++j) {
      to[j] = d * value(low(from, 8 + j) | bit(from + 4, j) << 4) + m;
      to[j + 16] = d * value(high(from, 8 + j) | bit(from + 4, j + 16) << 4) + m;
    }
  }
}

void q2_k(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 84, to += 256) {
    const float d = half(from + 80), dmin = half(from + 82);
    for (std::size_t i = 0; i < 256; ++i) {
      const std::size_t g = i / 16;
      to[i] = d * value(low(from, g)) * value(two_bits(from + 16, i)) - dmin * value(high(from, g));
    }
  }
}

void q3_k(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 110, to += 256) {
    const float d = half(from + 108);
    const std::byte *third = from, *scales = from + 96;
    for (std::size_t i = 0; i < 256; ++i) {
      // Lower halves of the scales of 16 groups in 8 bytes, the first 8 groups' first; 2 bits more of each in 4 bytes.
      const std::size_t g = i / 16;
      const int scale = (g < 8 ? low(scales, g) : high(scales, g - 8)) | (byte(scales, 8 + g % 4) >> 2 * (g / 4) & 3)
                                                                             << 4;
      const int q = two_bits(from + 32, i) - (byte(third, i % 32) >> (i / 32) & 1 ? 0 : 4);
      to[i] = d * value(scale - 32) * value(q);
    }
  }
}

void q4_k(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 144, to += 256) {
    const float d = half(from), dmin = half(from + 2);
    for (std::size_t i = 0; i < 8; ++i) {
      const Group g = group(from + 4, i);
      const float scale = d * value(g.scale), least = dmin * value(g.least);
      const std::byte* quants = from + 16 + i / 2 * 32;  // two groups share 32 bytes: lower halves, upper halves
      for (std::size_t j = 0; j < 32; ++j)
        to[32 * i + j] = scale * value(i % 2 ? high(quants, j) : low(quants, j)) - least;
    }
  }
}

void q5_k(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 176, to += 256) {
    const float d = half(from), dmin = half(from + 2);
    for (std::size_t i = 0; i < 8; ++i) {
      const Group g = group(from + 4, i);
      const float scale = d * value(g.scale), least = dmin * value(g.least);
      const std::byte *fifth = from + 16, *quants = from + 48 + i / 2 * 32;
      for (std::size_t j = 0; j < 32; ++j) {
        const int q = (i % 2 ? high(quants, j) : low(quants, j)) | (byte(fifth, j) >> i & 1) << 4;
        to[32 * i + j] = scale * value(q) - least;
      }
    }
  }
}

void q6_k(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 210, to += 256) {
    const float d = half(from + 208);
    for (std::size_t i = 0; i < 256; ++i) {
      // Per half of the block: 64 bytes with the lower four bits of 128 numbers, 32 bytes with their upper two.
      const std::size_t side = i / 128, j = i % 128;
      const std::byte *lower = from + 64 * side, *upper = from + 128 + 32 * side;
      const int q = (j < 64 ? low(lower, j) : high(lower, j - 64)) | (byte(upper, j % 32) >> (2 * (j / 32)) & 3) << 4;
      const auto scale = static_cast<std::int8_t>(byte(from, 192 + i / 16));
      to[i] = d * value(scale) * value(q - 32);
    }
  }
}

namespace {
constexpr std::array<std::int8_t, 16> uneven{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
}

void iq4_nl(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 18, to += 32) from_table(uneven, half(from), from + 2, to);
}

void iq4_xs(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 136, to += 256) {
    const float d = half(from);
    for (std::size_t i = 0; i < 8; ++i) {
      const int lower = i % 2 ? high(from, 4 + i / 2) : low(from, 4 + i / 2);
      const int scale = lower | (byte(from, 2 + i / 4) >> 2 * (i % 4) & 3) << 4;
      from_table(uneven, d * value(scale - 32), from + 8 + 16 * i, to + 32 * i);
    }
  }
}

void mxfp4(const std::byte* from, std::size_t blocks, float* to) {
  // Twice the values of E2M1 (OCP Microscaling Formats 1.0); the scale is half of the power of two that E8M0 names.
  constexpr std::array<std::int8_t, 16> table{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  for (; blocks > 0; --blocks, from += 17, to += 32) {
    const auto exponent = static_cast<std::uint32_t>(byte(from, 0));
    const float half_scale = std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
    from_table(table, half_scale, from + 1, to);
  }
}

void tq1_0(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 54) {
    const float d = half(from + 52);
    // Five digits to the base of 3 in a byte, as a fraction of 256: times 3ⁿ modulo 256, the next one is on top. So 32
    // bytes hold 160 numbers, 16 more 80, and the last 4, of four digits each, 16.
    const auto digits = [&](std::size_t first, std::size_t bytes, int each) {
      unsigned power = 1;
      for (int n = 0; n < each; ++n, power *= 3)
        for (std::size_t j = 0; j < bytes; ++j) {
          const unsigned rest = static_cast<unsigned>(byte(from, first + j)) * power & 255;
          *to++ = d * value(static_cast<int>(rest * 3 >> 8) - 1);
        }
    };
    digits(0, 32, 5);
    digits(32, 16, 5);
    digits(48, 4, 4);
  }
}

void tq2_0(const std::byte* from, std::size_t blocks, float* to) {
  for (; blocks > 0; --blocks, from += 66, to += 256) {
    const float d = half(from + 64);
    for (std::size_t i = 0; i < 256; ++i) to[i] = d * value(two_bits(from, i) - 1);
  }
}

}  // namespace headscope::gguf_blocks
