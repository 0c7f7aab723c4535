#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace headscope {

/// The middle value; of an even count the mean of the two middle ones. NaN of none.
template <class Number>
double median(std::vector<Number> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2) return static_cast<double>(*middle);
  const Number below = *std::max_element(values.begin(), middle);
  return 0.5 * (static_cast<double>(below) + static_cast<double>(*middle));
}

}  // namespace headscope
