#pragma once

#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor/tensor.h"
#include "tests/support/worst.h"

namespace headscope::testing {

/// Largest |a − b| of two tensors of one shape. A NaN in either gives NaN, for which no bound holds; ∞ equals itself.
inline double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const Tensor left = a.packed(), right = b.packed();
  Worst most;
  for (Index i = 0; i < left.size(); ++i) {
    const auto x = static_cast<double>(left.data()[i]), y = static_cast<double>(right.data()[i]);
    most.add(x == y ? 0 : std::abs(x - y));
  }
  return most.value();
}

}  // namespace headscope::testing
