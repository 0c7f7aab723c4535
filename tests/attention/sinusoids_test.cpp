#include "core/attention/sinusoids.h"

#include <doctest/doctest.h>

#include <cmath>

namespace headscope::sinusoids_test {

TEST_CASE("sinusoidal positions of four dimensions are those of the worked example") {
  const Tensor p = sinusoidal_positions(0, 2, 4);
  const double expected[2][4] = {{0, 1, 0, 1}, {0.841471, 0.540302, 0.00999983, 0.99995}};
  for (Index i = 0; i < 2; ++i)
    for (Index j = 0; j < 4; ++j) CHECK(p.at(i, j) == doctest::Approx(expected[i][j]).epsilon(1e-5));
}

TEST_CASE("moving on by k turns every pair of a sinusoidal position by the same angle, wherever it starts") {
  const Index d = 6, k = 5;
  const Tensor here = sinusoidal_positions(3, 40, d), there = sinusoidal_positions(3 + k, 40, d);
  for (Index p = 0; p < 40; ++p)
    for (Index pair = 0; pair < d / 2; ++pair) {
      const double angle = k * std::pow(10000.0, -2.0 * static_cast<double>(pair) / d);
      const double sine = here.at(p, 2 * pair), cosine = here.at(p, 2 * pair + 1);
      CHECK(there.at(p, 2 * pair) == doctest::Approx(sine * std::cos(angle) + cosine * std::sin(angle)).epsilon(1e-4));
      CHECK(there.at(p, 2 * pair + 1) ==
            doctest::Approx(cosine * std::cos(angle) - sine * std::sin(angle)).epsilon(1e-4));
    }
}

}  // namespace headscope::sinusoids_test
