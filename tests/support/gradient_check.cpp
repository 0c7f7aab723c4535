#include "tests/support/gradient_check.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/random.h"

namespace headscope::testing {
namespace {

Numbers numbers(const Tensor& x) {
  const Tensor packed = x.packed();
  const auto values = packed.values();
  return {values.begin(), values.end()};
}

void compare(const Numbers& found, const Numbers& expected, double tolerance, const char* what, std::size_t which) {
  REQUIRE(found.size() == expected.size());
  double largest = 1e-3;
  for (const double each : expected) largest = std::max(largest, std::abs(each));
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(what << " " << which << ", element " << i);
    CHECK(std::abs(found[i] - expected[i]) <= tolerance * largest);
  }
}

}  // namespace

void check_gradients(const GradientCheck& check, std::uint64_t seed) {
  std::vector<Numbers> at;
  for (const Tensor& input : check.inputs) at.push_back(numbers(input));
  const Numbers expected = check.definition(at);
  Random random(seed);
  Numbers weights;
  for (std::size_t i = 0; i < expected.size(); ++i) weights.push_back(static_cast<double>(random.normal()));

  // d (Σ weight · result) / d input, one element at a time.
  std::vector<Numbers> slopes;
  for (std::size_t i = 0; i < at.size(); ++i) {
    slopes.emplace_back();
    for (std::size_t k = 0; k < at[i].size(); ++k) {
      const double here = at[i][k], step = 1e-5 * std::max(1.0, std::abs(here));
      const auto total = [&](double value) {
        at[i][k] = value;
        const Numbers result = check.definition(at);
        double sum = 0;
        for (std::size_t j = 0; j < result.size(); ++j) sum += weights[j] * result[j];
        return sum;
      };
      slopes.back().push_back((total(here + step) - total(here - step)) / (2 * step));
      at[i][k] = here;
    }
  }

  std::vector<std::vector<Numbers>> found;
  for (const int threads : {1, 3}) {
    Backend backend(threads);
    Tape tape(backend);
    for (const Tensor& input : check.inputs) tape.watch(input);
    Tensor result;
    {
      const Backend::Recording recording(backend, &tape);
      result = check.op(backend);
    }
    compare(numbers(result), expected, check.tolerance, "result", 0);
    Tensor weight = Tensor::uninitialized(result.shape());
    std::ranges::transform(weights, weight.mutable_values().begin(), [](double w) { return static_cast<float>(w); });
    tape.backward(result, weight);
    found.emplace_back();
    for (std::size_t i = 0; i < check.inputs.size(); ++i) {
      found.back().push_back(numbers(tape.gradient(check.inputs[i])));
      compare(found.back().back(), slopes[i], check.tolerance, "gradient", i);
    }
  }
  CHECK(found[0] == found[1]);  // the same bits, whatever the threads
}

Slopes slopes(float& number, const std::function<double()>& value, float step) {
  const float was = number;
  const auto over = [&](float by) {
    number = was + by;
    const double above = value();
    number = was - by;
    const double below = value();
    number = was;
    return (above - below) / (2 * static_cast<double>(by));
  };
  return {over(step), over(2 * step)};
}

}  // namespace headscope::testing
