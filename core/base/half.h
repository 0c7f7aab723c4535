#pragma once
// Numbers of 16 bits: IEEE 754 binary16 (F16), and the upper half of a float32 (BF16).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace headscope {

float half_to_float(std::uint16_t bits);   ///< exact
std::uint16_t float_to_half(float value);  ///< round to nearest even

/// The 16 bits that lie there.
inline std::uint16_t bits_at(const std::byte* from) {
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

inline float bfloat_to_float(std::uint16_t bits) {  ///< exact
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}
/// The nearest number that BF16 has (of two, the even one). REQUIRES a finite one.
inline float rounded_to_bfloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

}  // namespace headscope
