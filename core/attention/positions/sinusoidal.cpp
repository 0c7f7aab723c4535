#include "core/attention/positions/sinusoidal.h"

#include <cassert>
#include <cmath>

#include "core/attention/rotary.h"
#include "core/base/nth.h"

namespace headscope {

Tensor sinusoidal_shift(double shift, int d, double base) {
  assert(d % 2 == 0);
  Tensor matrix = Tensor::zeros({d, d});
  const std::vector<double> omega = rotary_frequencies({.base = base}, d);
  for (Index i = 0; i < d / 2; ++i) {
    const double angle = shift * nth(omega, i);
    const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
    // sin(a + b) = sin a cos b + cos a sin b; cos(a + b) = cos a cos b − sin a sin b.
    matrix.ref(2 * i, 2 * i) = c;
    matrix.ref(2 * i + 1, 2 * i) = s;
    matrix.ref(2 * i, 2 * i + 1) = -s;
    matrix.ref(2 * i + 1, 2 * i + 1) = c;
  }
  return matrix;
}

}  // namespace headscope
