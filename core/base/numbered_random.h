#pragma once
// Random numbers for each of many things drawn with one seed, so that any of them can be told alone.

#include "core/base/random.h"

namespace headscope {

inline Random numbered_random(std::uint64_t seed, std::int64_t number) {
  Random of_seed(seed);
  return Random(of_seed.next() + static_cast<std::uint64_t>(number) * 0xD1B54A32D192ED03ull);
}

}  // namespace headscope
