// SoLU (Elhage et al., Softmax Linear Units, 2022): x ∘ softmax(x), with its gradient, by hand and by moving each
// input.

#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor/backend.h"
#include "core/tensor/row_queue.h"
#include "core/tensor/tape.h"

namespace headscope::solu_test {

TEST_CASE("SoLU of a row is each number times its softmax, and its gradient is the slope") {
  Backend backend(1);
  const Tensor x = Tensor::from({2, 3}, std::vector<float>{0, 0, static_cast<float>(std::log(2.0)), 1, -2, 0.5f});
  const Tensor y = backend.solu(x);
  // e⁰ + e⁰ + e^ln 2 = 4
  CHECK(y.at(0, 0) == doctest::Approx(0));
  CHECK(y.at(0, 2) == doctest::Approx(0.5 * std::log(2.0)));
  const double sum = std::exp(1.0) + std::exp(-2.0) + std::exp(0.5);
  CHECK(y.at(1, 0) == doctest::Approx(std::exp(1.0) / sum));
  CHECK(y.at(1, 1) == doctest::Approx(-2 * std::exp(-2.0) / sum));

  RowQueue queue(backend.pool());
  const Tensor later = backend.solu(x, &queue);
  queue.run();
  for (Index i = 0; i < 6; ++i)
    CHECK(later.values()[static_cast<std::size_t>(i)] == y.values()[static_cast<std::size_t>(i)]);

  // d y_1 / d x_j = s_1 (δ_1j + x_1 (δ_1j − s_j)), of the second row.
  const double s0 = std::exp(1.0) / sum, s1 = std::exp(-2.0) / sum;
  Tape tape(backend);
  const Backend::Recording recording(backend, &tape);
  tape.watch(x);
  const Tensor out = backend.solu(x);
  const std::vector<std::int32_t> targets{-1, 1};
  const Backend::Loss loss = backend.cross_entropy(out, targets);
  tape.backward(loss.mean, Tensor::full({1}, 1.0f));
  const Tensor gradient = tape.gradient(x);
  // Cross-entropy gives p − 1 at the target, p elsewhere; of a row that does not count, nothing.
  double e[3], total = 0, g[3];
  for (int j = 0; j < 3; ++j) total += e[j] = std::exp(static_cast<double>(out.at(1, j)));
  for (int j = 0; j < 3; ++j) g[j] = e[j] / total - (j == 1);
  const double s[3] = {s0, s1, 1 - s0 - s1}, in[3] = {1, -2, 0.5};
  for (int j = 0; j < 3; ++j) {
    double expected = 0;
    for (int i = 0; i < 3; ++i) expected += g[i] * s[i] * ((i == j) + in[i] * ((i == j) - s[j]));
    CHECK(gradient.at(1, j) == doctest::Approx(expected));
    CHECK(gradient.at(0, j) == 0);
  }
}

}  // namespace headscope::solu_test
