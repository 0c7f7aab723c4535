#include "core/tensor/gap.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace headscope::gap_test {

TEST_CASE("the greatest gap of two tensors is found through any strides, and NaN is never lost") {
  Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({3, 2});
  b.ref(2, 0) = -4;
  a.ref(1, 2) = 0.5f;
  CHECK(greatest_gap(a, b.transpose(0, 1)) == 4);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  a.ref(0, 0) = b.ref(0, 0) = -infinity;
  CHECK(greatest_gap(a, b.transpose(0, 1)) == 4);  // equal
  a.ref(0, 0) = std::nanf("");
  CHECK(std::isnan(greatest_gap(a, b.transpose(0, 1))));
  CHECK(greatest_gap(Tensor::zeros({0, 3}), Tensor::zeros({0, 3})) == 0);
}

}  // namespace headscope::gap_test
