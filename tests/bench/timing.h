#pragma once
// What the benchmarks that compare two things in one run share.

#include <chrono>
#include <functional>

namespace headscope::bench {

inline double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace headscope::bench
