#pragma once

#include <cmath>
#include <limits>

namespace headscope::testing {

/// The largest of the numbers added. A NaN among them stays, and so does having been given nothing: both read as NaN,
/// for which no bound holds, where a fold with std::max would drop the one and call the other 0.
class Worst {
 public:
  void add(double value) {
    if (!any_ || std::isnan(value) || value > value_) value_ = value;
    any_ = true;
  }
  double value() const { return value_; }

 private:
  double value_ = std::numeric_limits<double>::quiet_NaN();
  bool any_ = false;
};

}  // namespace headscope::testing
