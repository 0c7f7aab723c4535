// Singular values and their scaling against a decomposition of another kind: one-sided Jacobi rotations.

#include "core/tensor/singular.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/jacobi.h"
#include "tests/support/largest_difference.h"
#include "tests/support/random_tensor.h"

namespace headscope::singular_test {

using testing::jacobi;
using testing::largest_difference;
using testing::Parts;
using testing::random_tensor;

TEST_CASE("scaled singular values are U diag(z σ) Vᵀ, for wide, tall and strided matrices") {
  const Tensor wide = random_tensor({5, 9}, 3);
  for (const Tensor& w :
       {wide, random_tensor({9, 5}, 4), random_tensor({6, 6}, 5), wide.slice(1, 2, 6), random_tensor({1, 4}, 6)}) {
    CAPTURE(w.shape().str());
    const SingularDirections found = singular_directions(w);
    const Parts parts = jacobi(w);
    REQUIRE(found.values.size() == static_cast<std::size_t>(std::min(w.dim(0), w.dim(1))));
    for (std::size_t i = 0; i < found.values.size(); ++i)
      CHECK(found.values[i] == doctest::Approx(parts.values[i]).epsilon(1e-6));
    std::vector<double> z(found.values.size(), 1.0);
    CHECK(largest_difference(scaled_singular(w, found, z), w) == 0);
    z[0] = 0.25;
    CHECK(largest_difference(scaled_singular(w, found, z), parts.scaled(z)) < 2e-6);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] = i % 2 ? -1.5 : 2;
    CHECK(largest_difference(scaled_singular(w, found, z), parts.scaled(z)) < 2e-5);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] = i == 1 ? 1 : 0;
    CHECK(largest_difference(scaled_singular(w, found, z), parts.scaled(z)) < 2e-6);
    std::ranges::fill(z, 0.0);
    CHECK(largest_difference(scaled_singular(w, found, z), Tensor::zeros({w.dim(0), w.dim(1)})) == 0);
  }
}

TEST_CASE("parts that are kept scale a matrix again and again, and tell the slope of each: ⟨G, σ_i u_i v_iᵀ⟩") {
  for (const Tensor& w : {random_tensor({5, 9}, 3), random_tensor({9, 5}, 4), random_tensor({6, 6}, 5)}) {
    CAPTURE(w.shape().str());
    const SingularParts kept(w);
    const Parts parts = jacobi(w);
    REQUIRE(kept.count() == static_cast<std::size_t>(std::min(w.dim(0), w.dim(1))));
    std::vector<double> z(kept.count(), 1.0);
    CHECK(largest_difference(kept.scaled(z), w) == 0);
    z[0] = 0.25;
    CHECK(largest_difference(kept.scaled(z), parts.scaled(z)) < 2e-6);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] = i % 2 ? -1.5 : 2;
    CHECK(largest_difference(kept.scaled(z), parts.scaled(z)) < 2e-5);
    std::ranges::fill(z, 0.0);
    CHECK(largest_difference(kept.scaled(z), Tensor::zeros({w.dim(0), w.dim(1)})) == 0);
    const Tensor g = random_tensor({w.dim(0), w.dim(1)}, 8);
    const std::vector<double> slopes = kept.slopes(g);
    REQUIRE(slopes.size() == kept.count());
    for (std::size_t i = 0; i < z.size(); ++i) {
      std::vector<double> one(z.size(), 0.0);
      one[i] = 1;
      const Tensor part = parts.scaled(one);
      double slope = 0;
      for (Index row = 0; row < w.dim(0); ++row)
        for (Index column = 0; column < w.dim(1); ++column)
          slope += static_cast<double>(g.at(row, column)) * static_cast<double>(part.at(row, column));
      CHECK(std::abs(slopes[i] - slope) < 1e-5);
    }
  }
}

TEST_CASE("without its smaller singular values a matrix is the nearest one of that rank") {
  const Tensor w = random_tensor({12, 20}, 7);
  const SingularDirections found = singular_directions(w);
  for (const int rank : {1, 4, 11}) {
    std::vector<double> z(12, 0.0);
    double lost = 0;
    for (int i = 0; i < 12; ++i)
      (i < rank ? z[static_cast<std::size_t>(i)] = 1
                : lost += found.values[static_cast<std::size_t>(i)] * found.values[static_cast<std::size_t>(i)]);
    const Tensor low = scaled_singular(w, found, z);
    double apart = 0;
    for (Index i = 0; i < 12; ++i)
      for (Index j = 0; j < 20; ++j) {
        const double difference = static_cast<double>(w.at(i, j)) - static_cast<double>(low.at(i, j));
        apart += difference * difference;
      }
    CHECK(apart == doctest::Approx(lost).epsilon(1e-5));
  }
}

TEST_CASE("a matrix of less than full rank has zeros, and nothing comes of scaling them") {
  Tensor w = Tensor::zeros({4, 6});
  for (Index j = 0; j < 6; ++j) w.ref(0, j) = 1, w.ref(2, j) = 1;  // one value, √12
  const SingularDirections found = singular_directions(w);
  CHECK(found.values[0] == doctest::Approx(std::sqrt(12.0)));
  for (std::size_t i = 1; i < 4; ++i) CHECK(found.values[i] < 1e-6);
  CHECK(largest_difference(scaled_singular(w, found, std::vector<double>{1, 100, 100, 100}), w) < 1e-5);
}

}  // namespace headscope::singular_test
