#pragma once
// Numbers of 16 bits: IEEE 754 binary16 (F16), and the upper half of a float32 (BF16).

#include <bit>
#include <cstdint>

namespace headscope {

float half_to_float(std::uint16_t bits);   ///< exact
std::uint16_t float_to_half(float value);  ///< round to nearest even

inline float bfloat_to_float(std::uint16_t bits) {  ///< exact
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

}  // namespace headscope
