#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/tensor/backend.h"
#include "tests/support/worst.h"

namespace headscope::activation_test {

using testing::Worst;

namespace {

double gelu(double x) {
  return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}
double silu(double x) {
  return x / (1 + std::exp(-x));
}
double relu(double x) {
  return x > 0 ? x : 0;
}

}  // namespace

TEST_CASE("activations equal their formulas in double, also far out on both sides") {
  // Trained models reach −15 before the activation; overflow anywhere on the way must not turn into a wrong number.
  std::vector<float> x;
  for (int i = -4000; i <= 4000; ++i) x.push_back(0.01f * static_cast<float>(i));
  for (const float far : {100.0f, 1e3f, 1e4f, 1e6f}) {
    x.push_back(far);
    x.push_back(-far);
  }
  Backend backend(2);
  const Tensor in = Tensor::from({1, static_cast<Index>(x.size())}, x);
  const std::pair<Backend::Unary, double (*)(double)> functions[] = {{Backend::Unary::relu, relu},
                                                                     {Backend::Unary::gelu, gelu},
                                                                     {Backend::Unary::gelu_tanh, gelu_tanh},
                                                                     {Backend::Unary::silu, silu}};
  for (const auto& [unary, formula] : functions) {
    CAPTURE(static_cast<int>(unary));
    const Tensor out = backend.activate(unary, in);
    Worst worst;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = formula(static_cast<double>(x[i]));
      const double found = static_cast<double>(out.at(0, static_cast<Index>(i)));
      worst.add(std::abs(found - expected) / std::max(1.0, std::abs(expected)));
    }
    CHECK(worst.value() < 1e-6);
  }
}

}  // namespace headscope::activation_test
