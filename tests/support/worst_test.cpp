#include "tests/support/worst.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>
#include <vector>

#include "tests/support/largest_difference.h"

namespace headscope::worst_test {

using testing::largest_difference;
using testing::Worst;

TEST_CASE("the worst of some numbers is the largest; a NaN among them stays, and nothing is no number") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto worst = [](std::initializer_list<double> numbers) {
    Worst out;
    for (const double each : numbers) out.add(each);
    return out.value();
  };
  CHECK(worst({1, 3, 2}) == 3);
  CHECK(worst({-2, -5}) == -2);
  CHECK(std::isnan(worst({})));
  CHECK(std::isnan(worst({nan})));
  CHECK(std::isnan(worst({nan, 1})));
  CHECK(std::isnan(worst({1, nan})));
  CHECK(std::isnan(worst({1, nan, 2})));
}

TEST_CASE("tensors differ by their largest difference, by NaN where one is; equal infinities do not differ") {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto row = [](std::initializer_list<float> values) {
    return Tensor::from({static_cast<Index>(values.size())}, std::vector<float>(values));
  };
  CHECK(largest_difference(row({1, 2, 3}), row({1, 2.5f, 2.75f})) == 0.5);
  CHECK(largest_difference(row({-infinity, 1}), row({-infinity, 1})) == 0);
  CHECK(largest_difference(row({-infinity, 1}), row({0, 1})) == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(largest_difference(row({nan, 1}), row({0, 1}))));
  CHECK(std::isnan(largest_difference(row({0, 1, 2}), row({0, nan, 5}))));
}

}  // namespace headscope::worst_test
