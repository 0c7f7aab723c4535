#include "core/attention/neural_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
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

TEST_CASE("adaptive forgetting, by hand: surprise against its running mean, and how full the memory is") {
  // d = d_v = 1, k = 1, v = 2 then −1; θ = 0.1, η = 0, α = ½, so that logit α = 0. a = 2, b = 1, h = 4, c = 4.
  const AdaptiveForgetting by{true, 2, 1, 4, 4};
  NeuralMemory memory(1, 1, {0, 0.1, 0.5, by}, {});
  // The first token is neither more nor less surprising (ρ = 0), the memory empty (f = 0): α = σ(−1).
  const NeuralMemory::Lesson first = memory.learn({1}, {2});
  CHECK(first.surprise == doctest::Approx(4));  // 2 · |0 − 2|
  CHECK(first.forgetting == doctest::Approx(1 / (1 + std::exp(1.0))));
  CHECK(memory.size() == doctest::Approx(0.4));  // (1 − α) · 0 + 0.1 · 4
  // s = 2 · |0.4 + 1| = 2.8 against s̄ = 4: ρ = −1.2 ÷ 6.8. ‖M‖ = 0.4, mean ‖v‖² = 2.5: f = 0.4 ÷ √(4 · 2.5).
  const NeuralMemory::Lesson second = memory.learn({1}, {-1});
  const double rho = -1.2 / 6.8, full = 0.4 / std::sqrt(10.0), alpha = 1 / (1 + std::exp(-(2 * rho + full - 1)));
  CHECK(second.forgetting == doctest::Approx(alpha));
  CHECK(memory.size() == doctest::Approx(std::abs((1 - alpha) * 0.4 - 0.28)));
  // s̄ = 4 + (2.8 − 4) ÷ 2 = 3.4, and mean ‖v‖² = (4 + 1 + 9) ÷ 3.
  const double m = (1 - alpha) * 0.4 - 0.28, s = 2 * std::abs(m - 3);
  const NeuralMemory::Lesson third = memory.learn({1}, {3});
  CHECK(third.forgetting ==
        doctest::Approx(1 / (1 + std::exp(-(2 * (s - 3.4) / (s + 3.4) + std::abs(m) / std::sqrt(4 * 14.0 / 3) - 1)))));
}

TEST_CASE("adaptive forgetting keeps its bounds, and α of nothing or of all stays so") {
  MemoryRates rates{0, 0.1, 0.25, {true, 3, 2, 8, 16}};
  CHECK(adaptive_forgetting(rates, 0, 1) == doctest::Approx(0.25));  // as surprising, as full as usual: α itself
  CHECK(adaptive_forgetting(rates, 1, 1) == doctest::Approx(1 / (1 + 3 * std::exp(-3.0))));
  CHECK(adaptive_forgetting(rates, 0, 2) == doctest::Approx(1 / (1 + 3 * std::exp(-2.0))));
  CHECK(adaptive_forgetting(rates, -1, 0) == doctest::Approx(1 / (1 + 3 * std::exp(5.0))));
  for (const double alpha : {0.0, 1.0}) {
    rates.forgetting = alpha;
    CHECK(adaptive_forgetting(rates, 1, 9) == alpha);
  }
  // The running mean is over h tokens: with h = 1 it is the token before.
  NeuralMemory memory(1, 1, {0, 0.1, 0.5, {true, 1, 0, 1, 16}}, {});
  memory.learn({1}, {1});
  memory.learn({1}, {3});
  const double before = 2 * std::abs(memory.answer({1})[0] - 5);
  const double second = 2 * std::abs(0.2 - 3.0);
  CHECK(memory.learn({1}, {5}).forgetting ==
        doctest::Approx(1 / (1 + std::exp(-(before - second) / (before + second)))));
  // Keys that teach nothing surprise nobody: 0 against 0 is no surprise, and values of 0 fill nothing.
  NeuralMemory silent(2, 2, {0, 0.1, 0.25, {true, 5, 2, 4, 4}}, {});
  for (int i = 0; i < 3; ++i)
    CHECK(silent.learn({0, 0}, {0, 0}).forgetting == doctest::Approx(1 / (1 + 3 * std::exp(2.0))));
}

TEST_CASE("switched off, what adapts has no say; switched on, it is told token by token") {
  const Tensor q = random_tensor({9, 3}, 1), k = random_tensor({9, 3}, 2), v = random_tensor({9, 2}, 3);
  MemoryRates rates{0.3, 0.05, 0.1};
  const MemoryRun plain = run_memory(q, k, v, rates);
  CHECK(plain.size.empty());
  for (const double alpha : plain.forgetting) CHECK(alpha == 0.1);
  rates.adaptive = {false, 9, 9, 2, 1};
  const MemoryRun off = run_memory(q, k, v, rates);
  for (Index t = 0; t < 9; ++t) {
    CHECK(off.output.at(t, 0) == plain.output.at(t, 0));
    CHECK(off.surprise[static_cast<std::size_t>(t)] == plain.surprise[static_cast<std::size_t>(t)]);
  }
  rates.adaptive.on = true;
  const MemoryRun on = run_memory(q, k, v, rates);
  REQUIRE(on.size.size() == 9);
  NeuralMemory memory(3, 2, rates, {});
  for (Index t = 0; t < 9; ++t) {
    memory.learn(tensor_row(k, t), tensor_row(v, t));
    CHECK(on.size[static_cast<std::size_t>(t)] == doctest::Approx(memory.size()));
  }
  // The weights with the α of each token still give the output.
  const Tensor weights = memory_weights(q, k, rates, on.forgetting);
  for (Index t = 0; t < 9; ++t) {
    double sum = 0;
    for (Index s = 0; s <= t; ++s) sum += static_cast<double>(weights.at(t, s)) * static_cast<double>(v.at(s, 1));
    CHECK(sum == doctest::Approx(static_cast<double>(on.output.at(t, 1))).epsilon(1e-4));
  }
}

namespace {

/// Error at the end of the pairs that came last: eight pairs six times over, then eight others, `times` times over.
double error_of_new_topic(std::uint64_t seed, bool same_keys, Index times, const MemoryRates& rates) {
  constexpr Index d = 8, pairs = 8, rounds = 6;
  const auto unit = [](std::vector<double> x) {
    double sum = 0;
    for (const double each : x) sum += each * each;
    for (double& each : x) each /= std::sqrt(sum);
    return x;
  };
  const Tensor old_keys = random_tensor({pairs, d}, seed), old_values = random_tensor({pairs, d}, seed + 100);
  const Tensor keys = same_keys ? old_keys : random_tensor({pairs, d}, seed + 200);
  Tensor values = random_tensor({pairs, d}, seed + 300);
  if (same_keys)
    for (Index i = 0; i < pairs; ++i)
      for (Index c = 0; c < d; ++c) values.ref(i, c) = -old_values.at(i, c);
  NeuralMemory memory(d, d, rates, {});
  for (Index t = 0; t < pairs * rounds; ++t)
    memory.learn(unit(tensor_row(old_keys, t % pairs)), tensor_row(old_values, t % pairs));
  for (Index t = 0; t < pairs * times; ++t)
    memory.learn(unit(tensor_row(keys, t % pairs)), tensor_row(values, t % pairs));
  double wrong = 0, all = 0;
  for (Index i = 0; i < pairs; ++i) {
    const std::vector<double> said = memory.answer(unit(tensor_row(keys, i))), value = tensor_row(values, i);
    for (std::size_t c = 0; c < said.size(); ++c) {
      wrong += (said[c] - value[c]) * (said[c] - value[c]);
      all += value[c] * value[c];
    }
  }
  return wrong / all;
}

double best_of_fixed(std::uint64_t seed, bool same_keys, Index times) {
  double best = 1e9;
  for (const double alpha : {0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8})
    best = std::min(best, error_of_new_topic(seed, same_keys, times, {0.3, 0.2, alpha}));
  return best;
}

constexpr AdaptiveForgetting of_topics{true, 10, 1, 8, 8};

}  // namespace

TEST_CASE("after a change of topic adaptive forgetting recalls the new pairs better than any fixed rate of the grid") {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {  // the same keys with opposite values, twice
    CAPTURE(seed);
    CHECK(error_of_new_topic(seed, true, 2, {0.3, 0.2, 0.02, of_topics}) < best_of_fixed(seed, true, 2));
  }
}

TEST_CASE("where new keys come once, a fixed rate that was chosen for it does about as well") {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    CAPTURE(seed);
    const double ratio =
        error_of_new_topic(seed, false, 1, {0.3, 0.2, 0.02, of_topics}) / best_of_fixed(seed, false, 1);
    CAPTURE(ratio);
    CHECK(ratio > 0.9);
    CHECK(ratio < 1.15);
  }
}

TEST_CASE("the gradients of memories of one to four hidden layers, by central differences") {
  const std::vector<double> key{0.3, -0.8, 0.5}, value{0.7, -1.1};
  for (const Index depth : {1, 2, 3, 4}) {
    CAPTURE(depth);
    const MemoryShape shape{5, 7, depth};
    const auto loss = [&](const NeuralMemory& memory) {
      const std::vector<double> said = memory.answer(key);
      return (said[0] - value[0]) * (said[0] - value[0]) + (said[1] - value[1]) * (said[1] - value[1]);
    };
    NeuralMemory memory(3, 2, {0, 0.01, 0}, shape);
    const std::vector<double> before = memory.numbers();
    REQUIRE(static_cast<Index>(before.size()) == memory_numbers(3, 2, shape));
    REQUIRE(memory_numbers(3, 2, shape) == 5 * 3 + (depth - 1) * 25 + 2 * 5);
    std::vector<double> gradient;
    double squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      constexpr double step = 1e-5;
      memory.move(i, step);
      const double above = loss(memory);
      memory.move(i, -2 * step);
      const double below = loss(memory);
      memory.move(i, step);
      gradient.push_back((above - below) / (2 * step));
      squares += gradient.back() * gradient.back();
    }
    const NeuralMemory::Lesson lesson = memory.learn(key, value);
    CHECK(lesson.surprise == doctest::Approx(std::sqrt(squares)).epsilon(1e-6));
    const std::vector<double> after = memory.numbers();
    for (std::size_t i = 0; i < after.size(); ++i) CHECK(std::abs((before[i] - after[i]) / 0.01 - gradient[i]) < 1e-6);
  }
  CHECK(memory_numbers(3, 2, {}) == 6);
  CHECK(memory_numbers(3, 2, {0, 1, 3}) == 6);  // no hidden layer to be deep
}

}  // namespace headscope::neural_memory_test
