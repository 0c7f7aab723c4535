#include "core/attention/neural_memory.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "tests/support/random_tensor.h"

namespace headscope::neural_memory_test {

using testing::random_tensor;

TEST_CASE("two tokens of a memory of one number, by hand") {
  // k = 1, 2; v = 3, 5; q = 1. θ = 0.1, η = 0.5, α = 0.2; M and S begin at 0.
  const Tensor q = Tensor::full({2, 1}, 1), k = Tensor::from({2, 1}, std::vector<float>{1, 2}),
               v = Tensor::from({2, 1}, std::vector<float>{3, 5});
  const MemoryRun run = run_memory(q, k, v, {0.5, 0.1, 0.2}, {}, true);
  // ∇ = 2 (0 − 3) · 1 = −6; S = 0.6; M = 0.6.   ∇ = 2 (1.2 − 5) · 2 = −15.2; S = 0.3 + 1.52; M = 0.48 + 1.82.
  CHECK(run.surprise[0] == doctest::Approx(6));
  CHECK(run.surprise[1] == doctest::Approx(15.2));
  CHECK(run.loss[1] == doctest::Approx(14.44));
  CHECK(run.output.at(0, 0) == doctest::Approx(0.6));
  CHECK(run.output.at(1, 0) == doctest::Approx(2.3));
  CHECK(run.states[1].at(0, 0) == doctest::Approx(2.3));
}

TEST_CASE("a memory of one matrix answers with a mixture of its values") {
  constexpr Index n = 20;
  const Tensor q = random_tensor({n, 3}, 1), k = random_tensor({n, 3}, 2), v = random_tensor({n, 2}, 3);
  const MemoryRates rates{0.7, 0.05, 0.1};
  const MemoryRun run = run_memory(q, k, v, rates);
  const Tensor weights = memory_weights(q, k, rates);
  for (Index t = 0; t < n; ++t) {
    for (Index s = t + 1; s < n; ++s) CHECK(weights.at(t, s) == 0);
    for (Index e = 0; e < 2; ++e) {
      double sum = 0;
      for (Index s = 0; s <= t; ++s) sum += static_cast<double>(weights.at(t, s)) * static_cast<double>(v.at(s, e));
      CHECK(std::abs(sum - static_cast<double>(run.output.at(t, e))) < 1e-5);
    }
  }
}

TEST_CASE("without momentum and forgetting, keys of length one and θ = ½ write each value exactly") {
  // The delta rule with rate 1: M ← M − (M k − v) kᵀ.
  const Tensor k = Tensor::from({3, 2}, std::vector<float>{1, 0, 0.6f, 0.8f, 1, 0});
  const Tensor v = Tensor::from({3, 1}, std::vector<float>{4, -2, 7});
  const MemoryRun run = run_memory(k, k, v, {0, 0.5, 0});
  for (Index t = 0; t < 3; ++t) CHECK(run.output.at(t, 0) == doctest::Approx(v.at(t, 0)));
  CHECK(run.loss[2] ==
        doctest::Approx((7 - 4 + 0.6 * 4.4) * (7 - 4 + 0.6 * 4.4)));  // after token 1: M (1, 0) = 4 − 0.6 · 4.4
}

TEST_CASE("a deep memory learns what it is told again and again, and its surprise is the norm of a true gradient") {
  const Tensor one = random_tensor({1, 4}, 5), told = random_tensor({1, 3}, 6);
  Tensor k = Tensor::uninitialized({60, 4}), v = Tensor::uninitialized({60, 3});
  for (Index t = 0; t < 60; ++t) {
    for (Index j = 0; j < 4; ++j) k.ref(t, j) = one.at(0, j);
    for (Index j = 0; j < 3; ++j) v.ref(t, j) = told.at(0, j);
  }
  const MemoryRun run = run_memory(k, k, v, {0, 0.02, 0}, {8, 1});
  CHECK(run.loss.back() < 1e-3 * run.loss.front());
  CHECK(run.surprise.back() < 0.1 * run.surprise.front());
  // With a tiny θ the loss falls by θ ‖∇‖² to first order: what a gradient promises.
  const MemoryRun small = run_memory(k, k, v, {0, 1e-6, 0}, {8, 1});
  CHECK((small.loss[0] - small.loss[1]) == doctest::Approx(1e-6 * small.surprise[0] * small.surprise[0]).epsilon(1e-3));
}

TEST_CASE("a memory that learns too fast says so") {
  const Tensor k = Tensor::full({200, 2}, 3), v = random_tensor({200, 2}, 1);
  CHECK_THROWS_AS(run_memory(k, k, v, {0.9, 1, 0}), Error);
}

TEST_CASE("the masks of the three forms against their one-line rules") {
  constexpr Index n = 11, p = 2, span = 4;
  const TitansMask context = titans_mask(TitansForm::context, n, p, span),
                   gate = titans_mask(TitansForm::gate, n, p, span);
  CHECK(context.columns() == p + 2 * n);
  CHECK(gate.columns() == p + n);
  CHECK(titans_mask(TitansForm::layer, n, p, span).hidden == gate.hidden);
  for (Index i = 0; i < n; ++i) {
    for (Index c = 0; c < gate.columns(); ++c) {
      const Index j = c - p;
      CHECK((gate.hidden[static_cast<std::size_t>(i * gate.columns() + c)] == 0) ==
            (c < p || (j <= i && i - j < span)));
    }
    for (Index c = 0; c < context.columns(); ++c) {
      const bool recalled = c >= p && c < p + n;
      const Index j = recalled ? c - p : c - p - n;
      const bool expected = c < p || (i / span == j / span && (recalled || j <= i));
      CHECK((context.hidden[static_cast<std::size_t>(i * context.columns() + c)] == 0) == expected);
    }
  }
}

TEST_CASE("a deep memory of one neuron, by hand: M(k) = W tanh(u k), both learn along their own slope") {
  const MemoryRates rates{0.5, 0.05, 0.1};
  NeuralMemory memory(1, 1, rates, {1, 3});
  // Far out tanh is 1, which tells W; then u. (Of W and u with both signs turned M is the same.)
  double w = memory.answer({1e6})[0], u = std::atanh(memory.answer({0.5})[0] / w) / 0.5, past_w = 0, past_u = 0;
  for (const auto& [key, value] : {std::pair{0.7, 2.0}, {-1.1, 0.4}, {0.3, -1.0}}) {
    const double z = std::tanh(u * key), error = w * z - value;
    const double by_w = 2 * error * z, by_u = 2 * error * w * (1 - z * z) * key;
    const NeuralMemory::Lesson lesson = memory.learn({key}, {value});
    CHECK(lesson.loss == doctest::Approx(error * error));
    CHECK(lesson.surprise == doctest::Approx(std::sqrt(by_w * by_w + by_u * by_u)));
    past_w = 0.5 * past_w - 0.05 * by_w, past_u = 0.5 * past_u - 0.05 * by_u;
    w = 0.9 * w + past_w, u = 0.9 * u + past_u;
    for (const double query : {0.2, -1.5, 3.0})
      CHECK(memory.answer({query})[0] == doctest::Approx(w * std::tanh(u * query)));
  }
}

TEST_CASE("states are kept where they are asked for and there are any") {
  const Tensor k = random_tensor({3, 2}, 1), v = random_tensor({3, 2}, 2);
  CHECK(run_memory(k, k, v, {}, {}, true).states.size() == 3);
  CHECK(run_memory(k, k, v, {}, {}, false).states.empty());
  CHECK(run_memory(k, k, v, {}, {4, 1}, true).states.empty());
}

}  // namespace headscope::neural_memory_test
