#include "core/tensor/gap.h"

#include <cassert>
#include <cmath>

namespace headscope {

double greatest_gap(const Tensor& a, const Tensor& b) {
  assert(a.shape() == b.shape());
  const Tensor left = a.packed(), right = b.packed();
  double greatest = 0;
  for (Index i = 0; i < left.size(); ++i) {
    const auto x = static_cast<double>(left.data()[i]), y = static_cast<double>(right.data()[i]);
    const double gap = x == y ? 0 : std::abs(x - y);
    if (std::isnan(gap)) return gap;
    if (gap > greatest) greatest = gap;
  }
  return greatest;
}

}  // namespace headscope
