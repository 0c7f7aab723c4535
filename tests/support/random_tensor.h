#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/base/random.h"
#include "core/tensor/tensor.h"

namespace headscope::testing {

/// Independent N(0, 1) entries. Seeds are few, and tests ask for the same numbers hundreds of times: they are kept.
inline Tensor random_tensor(Shape shape, std::uint64_t seed) {
  constexpr std::size_t most_kept = 1 << 21;
  struct Drawn {
    Random random;
    std::vector<float> numbers;
  };
  static std::mutex lock;
  static std::map<std::uint64_t, Drawn> all;
  Tensor t = Tensor::uninitialized(shape);
  const auto to = t.mutable_values();
  if (to.size() > most_kept) {
    Random random(seed);
    for (float& v : to) v = random.normal();
    return t;
  }
  const std::lock_guard hold(lock);
  Drawn& drawn = all.try_emplace(seed, Drawn{Random(seed), {}}).first->second;
  while (drawn.numbers.size() < to.size()) drawn.numbers.push_back(drawn.random.normal());
  std::copy_n(drawn.numbers.begin(), to.size(), to.begin());
  return t;
}

}  // namespace headscope::testing
