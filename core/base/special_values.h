#pragma once
// What a mean over nothing is, and what no number exceeds. For .cpp files.

#include <limits>

namespace headscope {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr float float_infinity = std::numeric_limits<float>::infinity();

}  // namespace headscope
