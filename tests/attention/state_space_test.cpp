#include "core/attention/state_space.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/attention/selective_scan.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/support/random_tensor.h"

namespace headscope::state_space_test {

using testing::random_tensor;

namespace {
std::vector<double> random_numbers(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<double>(random.normal()));
  return out;
}

SelectiveScan random_scan(Index n, Index size, Index channels) {
  SelectiveScan in{random_tensor({n, channels}, 1), random_tensor({n, size}, 2), random_tensor({n, size}, 3), {}, {}};
  for (const float x : in.x.values()) in.delta.push_back(softplus(static_cast<double>(x)));  // each channel its own
  for (Index i = 0; i < size; ++i) in.a.push_back(-0.2 * static_cast<double>(i + 1));
  return in;
}
}  // namespace

TEST_CASE("the worked example: a = 0.9, b = 0.5, c = 1 answers an impulse with 0.5, 0.45, 0.405, 0.365, 0.328, 0.295") {
  const StateSpace system{1, {0.9}, {0.5}, {1}, 0};
  const std::vector<double> impulse{1, 0, 0, 0, 0, 0}, expected{0.5, 0.45, 0.405, 0.365, 0.328, 0.295};
  const auto recurrent = run_recurrence(system, impulse), k = kernel(system, 6);
  const auto convolved = convolve(k, impulse), fast = convolve_fft(k, impulse);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(std::round(recurrent[i] * 1000) / 1000 == doctest::Approx(expected[i]));
    CHECK(k[i] == doctest::Approx(recurrent[i]));
    CHECK(convolved[i] == doctest::Approx(recurrent[i]));
    CHECK(fast[i] == doctest::Approx(recurrent[i]));
  }
}

TEST_CASE("a state space's recurrence is its convolution, by the sum and by Fourier transforms") {
  StateSpace system{3, random_numbers(9, 1), random_numbers(3, 2), random_numbers(3, 3), 0};
  for (double& value : system.a) value *= 0.3;
  for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{64}, std::size_t{100}}) {
    const auto u = random_numbers(n, 4);
    std::vector<double> states;
    const auto y = run_recurrence(system, u, &states);
    CHECK(states.size() == 3 * n);
    const auto k = kernel(system, static_cast<Index>(n));
    const auto plain = convolve(k, u), fast = convolve_fft(k, u);
    for (std::size_t t = 0; t < n; ++t) {
      CHECK(plain[t] == doctest::Approx(y[t]).epsilon(1e-9));
      CHECK(std::abs(fast[t] - y[t]) < 1e-9);
    }
  }
  system.d = 2;
  CHECK(run_recurrence(system, std::vector<double>{1})[0] == doctest::Approx(kernel(system, 1)[0] + 2));
}

TEST_CASE("steps of a system of continuous time follow its exponential") {
  const StateSpace decay{1, {-0.5}, {2}, {1}, 0};
  const StateSpace held = discretize(decay, 0.1, Discretization::zero_order_hold);
  CHECK(held.a[0] == doctest::Approx(std::exp(-0.05)));
  CHECK(held.b[0] == doctest::Approx((1 - std::exp(-0.05)) / 0.5 * 2));
  const StateSpace bilinear = discretize(decay, 0.1, Discretization::bilinear);
  CHECK(bilinear.a[0] == doctest::Approx((1 - 0.025) / (1 + 0.025)));
  CHECK(bilinear.b[0] == doctest::Approx(0.1 / (1 + 0.025) * 2));
  // Two numbers: x' = (y, −x) turns; the bilinear form turns by 2 atan(Δ/2) and keeps the length.
  const StateSpace turning = discretize({2, {0, 1, -1, 0}, {0, 0}, {1, 0}, 0}, 0.5, Discretization::bilinear);
  CHECK(turning.a[0] == doctest::Approx(std::cos(2 * std::atan(0.25))));
  CHECK(turning.a[1] == doctest::Approx(std::sin(2 * std::atan(0.25))));
  CHECK_THROWS_AS(discretize({2, {0, 1, -1, 0}, {0, 0}, {1, 0}, 0}, 0.5, Discretization::zero_order_hold), Error);
}

TEST_CASE("the HiPPO matrix, and a memory that holds what was seen as a polynomial") {
  // A_nk = √((2n+1)(2k+1)) below the diagonal, n + 1 on it.
  const auto a = hippo_matrix(3);
  const std::vector<double> by_hand{1, 0, 0, std::sqrt(3.0), 2, 0, std::sqrt(5.0), std::sqrt(15.0), 3};
  for (std::size_t i = 0; i < 9; ++i) CHECK(a[i] == doctest::Approx(by_hand[i]));
  CHECK(hippo_input(3)[2] == doctest::Approx(std::sqrt(5.0)));

  // A parabola is recalled by a state of eight numbers; a state of one recalls the mean.
  constexpr Index n = 200;
  std::vector<double> u;
  double mean = 0;
  for (Index i = 0; i < n; ++i) {
    const double s = static_cast<double>(i) / n;
    u.push_back(1 + s - 2 * s * s);
    mean += u.back() / n;
  }
  const auto states = hippo_memory(u, 8);
  REQUIRE(states.size() == static_cast<std::size_t>(n * 8));
  const auto recalled = hippo_recall({states.data() + (n - 1) * 8, 8}, n);
  for (std::size_t i = 10; i < n; ++i) CHECK(std::abs(recalled[i] - u[i]) < 0.03);  // steps of 1/200
  const auto one = hippo_memory(u, 1);
  CHECK(hippo_recall({one.data() + n - 1, 1}, 3)[1] == doctest::Approx(mean).epsilon(0.02));
}

TEST_CASE("a selective scan in parallel equals it token by token, and its hidden attention times the input") {
  for (const Index n : {1, 2, 3, 17, 64}) {
    const SelectiveScan in = random_scan(n, 4, 3);
    std::vector<Tensor> states;
    int rounds = 0;
    const Tensor y = scan_recurrent(in, &states), parallel = scan_parallel(in, &rounds);
    CHECK(static_cast<Index>(states.size()) == n);
    CHECK(rounds == static_cast<int>(std::ceil(std::log2(static_cast<double>(n)))));
    for (Index e = 0; e < 3; ++e) {
      const Tensor weights = hidden_attention(in, e);
      for (Index t = 0; t < n; ++t) {
        double sum = 0;
        for (Index s = 0; s < n; ++s) sum += static_cast<double>(weights.at(t, s)) * static_cast<double>(in.x.at(s, e));
        CHECK(std::abs(static_cast<double>(parallel.at(t, e)) - static_cast<double>(y.at(t, e))) < 1e-5);
        CHECK(std::abs(sum - static_cast<double>(y.at(t, e))) < 1e-5 * (1 + std::abs(sum)));
        for (Index s = t + 1; s < n; ++s) CHECK(weights.at(t, s) == 0);
      }
    }
  }
}

TEST_CASE("with steps of one length and the same B and C a selective scan is a convolution") {
  SelectiveScan in = random_scan(12, 2, 1);
  for (Index t = 0; t < 12; ++t) {
    in.delta[static_cast<std::size_t>(t)] = 0.3;
    for (Index i = 0; i < 2; ++i) in.b.ref(t, i) = in.b.at(0, i), in.c.ref(t, i) = in.c.at(0, i);
  }
  StateSpace system{2, {std::exp(0.3 * in.a[0]), 0, 0, std::exp(0.3 * in.a[1])}, {}, {}, 0};
  std::vector<double> u;
  for (Index i = 0; i < 2; ++i) {
    // Zero-order hold of x' = a x + b u over a step of 0.3.
    system.b.push_back((std::exp(0.3 * in.a[static_cast<std::size_t>(i)]) - 1) / in.a[static_cast<std::size_t>(i)] *
                       static_cast<double>(in.b.at(0, i)));
    system.c.push_back(static_cast<double>(in.c.at(0, i)));
  }
  for (Index t = 0; t < 12; ++t) u.push_back(static_cast<double>(in.x.at(t, 0)));
  const auto expected = convolve(kernel(system, 12), u);
  const Tensor y = scan_recurrent(in);
  for (Index t = 0; t < 12; ++t)
    CHECK(y.at(t, 0) == doctest::Approx(expected[static_cast<std::size_t>(t)]).epsilon(1e-5));
}

}  // namespace headscope::state_space_test
