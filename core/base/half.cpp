#include "core/base/half.h"

#include <cmath>

namespace headscope {

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
  if (exponent == 0) {  // zero or subnormal: fraction · 2^-24, exact in float32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  // Infinity and NaN keep the all-ones exponent; the bias moves from 15 to 127 for the rest.
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  const auto half = [&](std::uint32_t rest) { return static_cast<std::uint16_t>(sign | rest); };
  if (magnitude > 0x7f800000u) return half(0x7e00u | (magnitude >> 13 & 0x3ffu));  // NaN, made quiet
  if (magnitude >= 0x477ff000u) return half(0x7c00u);  // from 65520 on, half way past the largest half: infinity
  // Below 2^-14 a half counts in steps of 2^-24; nearbyint rounds halves to even. 1024 steps are the smallest normal.
  if (magnitude < 0x38800000u) return half(static_cast<std::uint32_t>(std::nearbyint(std::abs(value) * 0x1p24f)));
  // Adding just under half of the dropped 13 bits, or half of them when the kept part is odd, rounds to nearest even; a
  // carry runs into the exponent as it should.
  const std::uint32_t rebased = magnitude - (112u << 23);
  return half((rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13);
}

}  // namespace headscope
