// ln Σ exp in double precision, by every instruction set, beside long double.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/tensor/row_ops.h"

namespace headscope::log_sum_exp_test {

TEST_CASE("rows of any width, wherever the largest number stands, however far it is from the others") {
  for (const std::size_t n : {1, 2, 3, 7, 8, 15, 16, 17, 33, 200})
    for (const float far : {1.0f, 40.0f, 3000.0f})
      for (std::size_t largest = 0; largest < n; ++largest) {
        std::vector<float> x(n);
        for (std::size_t i = 0; i < n; ++i) x[i] = far * static_cast<float>(std::sin(3.7 * static_cast<double>(i + 1)));
        x[largest] = 1.5f * far;
        long double sum = 0;
        for (const float each : x)
          sum += std::exp(static_cast<long double>(each) - static_cast<long double>(1.5f * far));
        const double expected = static_cast<double>(static_cast<long double>(1.5f * far) + std::log(sum));
        CAPTURE(n);
        CAPTURE(largest);
        CHECK(row_ops::log_sum_exp(x.data(), static_cast<Index>(n)) == doctest::Approx(expected).epsilon(1e-14));
      }
  const float none = -std::numeric_limits<float>::infinity();
  for (const std::vector<float>& x : {std::vector<float>(5, none), std::vector<float>(40, none)})
    CHECK(row_ops::log_sum_exp(x.data(), static_cast<Index>(x.size())) == none);
  std::vector<float> one(40, none);
  one[7] = 2;
  CHECK(row_ops::log_sum_exp(one.data(), 40) == doctest::Approx(2).epsilon(1e-15));
}

}  // namespace headscope::log_sum_exp_test
