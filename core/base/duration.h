#pragma once

#include <chrono>
#include <string>

namespace headscope {

/// A span of time in words for people: "3 s", "2 min 05 s", "1 h 07 min". Rounded to seconds; what is negative is 0.
std::string duration_text(double seconds);

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace headscope
