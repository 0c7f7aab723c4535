#pragma once
// What the benchmarks that compare two things in one run share.

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace headscope::bench {

inline double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// REQUIRES at least one value.
inline double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

}  // namespace headscope::bench
