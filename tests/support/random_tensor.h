#pragma once

#include <cstdint>

#include "core/base/random.h"
#include "core/tensor/tensor.h"

namespace headscope::testing {

/// Independent N(0, 1) entries.
inline Tensor random_tensor(Shape shape, std::uint64_t seed) {
  Random random(seed);
  Tensor t = Tensor::uninitialized(shape);
  for (float& v : t.mutable_values()) v = random.normal();
  return t;
}

}  // namespace headscope::testing
