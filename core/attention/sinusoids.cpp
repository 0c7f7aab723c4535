#include "core/attention/sinusoids.h"

#include <cmath>

namespace headscope {

Tensor sinusoidal_positions(Index first, Index count, Index d, double base) {
  Tensor positions = Tensor::zeros({count, d});
  for (Index i = 0; i < d; ++i) {
    const double frequency = std::pow(base, -static_cast<double>(i - i % 2) / static_cast<double>(d));
    for (Index p = 0; p < count; ++p) {
      const double angle = static_cast<double>(first + p) * frequency;
      positions.ref(p, i) = static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return positions;
}

}  // namespace headscope
