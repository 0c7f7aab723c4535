// Rotary positions against the papers' formulas, written out here in double precision.

#include "core/attention/rotary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "core/base/nth.h"
#include "core/base/random.h"

namespace headscope::rotary_test {

namespace {

using Scaling = RotaryConfig::Scaling;
constexpr double pi = std::numbers::pi;

std::vector<double> random_vector(int d, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> x;
  for (int i = 0; i < d; ++i) x.push_back(static_cast<double>(random.normal()));
  return x;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

TEST_CASE("frequencies of every scaling are the papers' formulas") {
  const int d = 64, context = 2048;
  const double base = 10000, s = 4;
  const RotaryConfig own{.base = base};
  const auto of = [&](Scaling scaling) { return rotary_frequencies(rescaled(own, scaling, s, context), d); };
  const auto none = of(Scaling::none), linear = of(Scaling::linear), ntk = of(Scaling::ntk), yarn = of(Scaling::yarn),
             llama3 = of(Scaling::llama3);
  for (int i = 0; i < d / 2; ++i) {
    CAPTURE(i);
    const auto at = static_cast<std::size_t>(i);
    const double theta = std::pow(base, -2.0 * i / d);
    CHECK(none[at] == doctest::Approx(theta).epsilon(1e-12));
    // PI: f'(x, m) = f(x, m L / L').
    CHECK(linear[at] == doctest::Approx(theta / s).epsilon(1e-12));
    // NTK-aware: b' = b · s^(|D|/(|D|−2)).
    CHECK(ntk[at] == doctest::Approx(std::pow(base * std::pow(s, d / (d - 2.0)), -2.0 * i / d)).epsilon(1e-12));
    // YaRN: r = L / λ, γ(r) a ramp from α = 1 to β = 32, h(θ) = (1 − γ) θ/s + γ θ.
    const double r = context / (2 * pi / theta);
    const double gamma = r < 1 ? 0 : r > 32 ? 1 : (r - 1) / 31;
    CHECK(yarn[at] == doctest::Approx((1 - gamma) * theta / s + gamma * theta).epsilon(1e-12));
    // Llama 3, as its reference code writes it: by wavelength.
    const double wavelength = 2 * pi / theta, low = context / 1.0, high = context / 4.0;
    const double smooth = (context / wavelength - 1) / (4 - 1);
    const double expected = wavelength < high  ? theta
                            : wavelength > low ? theta / s
                                               : (1 - smooth) * theta / s + smooth * theta;
    CHECK(llama3[at] == doctest::Approx(expected).epsilon(1e-12));
  }
  // NTK leaves the fastest pair and stretches the slowest by exactly s.
  CHECK(ntk.front() == doctest::Approx(1));
  CHECK(ntk.back() == doctest::Approx(none.back() / s).epsilon(1e-12));
  CHECK(rotary_magnitude(rescaled(own, Scaling::yarn, s, context)) == doctest::Approx(0.1 * std::log(4.0) + 1));
  for (const Scaling other : {Scaling::none, Scaling::linear, Scaling::ntk, Scaling::llama3})
    CHECK(rotary_magnitude(rescaled(own, other, s, context)) == 1);
}

TEST_CASE("a factor of 1 changes nothing, whatever the method") {
  const RotaryConfig own{.base = 500'000};
  for (const RotaryScalingInfo& each : rotary_scalings()) {
    const auto same = rotary_frequencies(rescaled(own, each.scaling, 1, 8192), 32);
    const auto plain = rotary_frequencies(own, 32);
    for (std::size_t i = 0; i < same.size(); ++i) CHECK(same[i] == doctest::Approx(plain[i]).epsilon(1e-12));
  }
}

TEST_CASE("only the distance matters: score(2, 5) = score(100, 103), in both layouts") {
  const int d = 8;
  const auto q = random_vector(d, 1), k = random_vector(d, 2);
  const auto theta = rotary_frequencies({}, d);
  for (const RotaryLayout layout : {RotaryLayout::half_split, RotaryLayout::interleaved}) {
    const auto score = [&](double m, double n) {
      return dot(rotated(q, m, theta, layout), rotated(k, n, theta, layout));
    };
    CHECK(score(2, 5) == doctest::Approx(score(100, 103)).epsilon(1e-12));
    CHECK(score(2, 5) != doctest::Approx(score(2, 6)));
    // ... and it is the sum over pairs of |q||k| cos(φ + (m − n) θ).
    double sum = 0;
    const auto parts = rotary_parts(q, k, layout);
    for (std::size_t i = 0; i < parts.size(); ++i) sum += parts[i].at(2 - 5, theta[i]);
    CHECK(sum == doctest::Approx(score(2, 5)).epsilon(1e-12));
    CHECK(dot(rotated(q, 7, theta, layout), rotated(q, 7, theta, layout)) == doctest::Approx(dot(q, q)));
  }
}

TEST_CASE("the interleaved layout is the text's program: complex numbers x[2i] + i x[2i+1] times e^(i p θ)") {
  const auto x = random_vector(6, 3);
  const auto theta = rotary_frequencies({}, 6);
  const auto turned = rotated(x, 11, theta, RotaryLayout::interleaved);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto z = std::complex<double>(x[2 * i], x[2 * i + 1]) * std::polar(1.0, 11 * theta[i]);
    CHECK(turned[2 * i] == doctest::Approx(z.real()));
    CHECK(turned[2 * i + 1] == doctest::Approx(z.imag()));
  }
  // Half-split is the same on the dimensions in another order.
  const std::vector<double> sorted{x[0], x[2], x[4], x[1], x[3], x[5]};
  const auto half = rotated(sorted, 11, theta, RotaryLayout::half_split);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(half[i] == doctest::Approx(turned[2 * i]));
    CHECK(half[i + 3] == doctest::Approx(turned[2 * i + 1]));
  }
}

TEST_CASE("parts of a score add up to it, with scale and YaRN's factor") {
  const auto q = random_vector(16, 4), k = random_vector(16, 5);
  const RotaryConfig config = rescaled({}, Scaling::yarn, 8, 256);
  const auto theta = rotary_frequencies(config, 16);
  const double magnitude = rotary_magnitude(config);
  double sum = 0;
  for (const double part : rotary_scores(rotary_parts(q, k), config, 30, 0.25)) sum += part;
  CHECK(sum == doctest::Approx(0.25 * dot(rotated(q, 130, theta, RotaryLayout::half_split, magnitude),
                                          rotated(k, 100, theta, RotaryLayout::half_split, magnitude))));
}

TEST_CASE("the part of a head that turns, as first and second halves of its pairs") {
  const Tensor x = Tensor::from({2, 8}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17});
  const auto is = [](const Tensor& found, std::vector<float> expected) {
    CHECK(found.shape() == Shape{2, static_cast<Index>(expected.size()) / 2});
    CHECK(std::ranges::equal(found.packed().values(), expected));
  };
  is(turning_part(x, {}), {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17});
  is(turning_part(x, {.layout = RotaryLayout::interleaved}), {0, 2, 4, 6, 1, 3, 5, 7, 10, 12, 14, 16, 11, 13, 15, 17});
  is(turning_part(x, {.width = 6}), {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15});
  is(turning_part(x, {.width = 6, .layout = RotaryLayout::interleaved}), {0, 2, 4, 1, 3, 5, 10, 12, 14, 11, 13, 15});
}

TEST_CASE("YaRN's ramp by pairs: from the pair that turns 32 times in training to the one that turns once") {
  RotaryConfig config = rescaled({}, Scaling::yarn, 4, 4096);
  const int d = 64;
  // The pair that turns t times: its angle is 2π t ÷ 4096 = 10000^(−2 i / 64).
  const auto pair = [&](double turns) {
    return -32 * std::log(2 * std::numbers::pi * turns / 4096) / std::log(10000.0);
  };
  for (const bool whole : {false, true}) {
    config.ramp = whole ? RotaryConfig::Ramp::whole_pairs : RotaryConfig::Ramp::pairs;
    const double first = whole ? std::floor(pair(32)) : pair(32), last = whole ? std::ceil(pair(1)) : pair(1);
    REQUIRE(first > 5);
    REQUIRE(last < 30);
    const auto found = rotary_frequencies(config, d);
    for (int i = 0; i < d / 2; ++i) {
      CAPTURE(i);
      const double theta = std::pow(10000.0, -2.0 * i / d),
                   keep = std::min(1.0, std::max(0.0, 1 - (i - first) / (last - first)));
      CHECK(found[static_cast<std::size_t>(i)] == doctest::Approx(theta * keep + theta / 4 * (1 - keep)));
    }
  }
}

TEST_CASE("queries grow by a step for every L tokens, and nothing else does") {
  RotaryConfig c{.base = 100, .original_context = 4, .query_growth = 0.5};
  const double expected[] = {1, 1, 1, 1, 1.34657359, 1.34657359, 1.34657359, 1.34657359, 1.54930614};
  for (Index position = 0; position < 9; ++position)
    CHECK(query_growth(c, position) == doctest::Approx(nth(expected, position)));
  const RotaryTable own = rotary_table(rotary_frequencies(c, 6), 3, 6), grown = of_queries(own, c, 3, 6);
  for (Index row = 0; row < 6; ++row)
    for (Index pair = 0; pair < 3; ++pair) {
      CHECK(static_cast<double>(grown.cosine.at(row, pair)) ==
            doctest::Approx(nth(expected, row + 3) * static_cast<double>(own.cosine.at(row, pair))));
      CHECK(static_cast<double>(grown.sine.at(row, pair)) ==
            doctest::Approx(nth(expected, row + 3) * static_cast<double>(own.sine.at(row, pair))));
    }
  // Where a part of a head turns the others grow as well: pairs of (by, 0).
  c.width = 6, c.layout = RotaryLayout::interleaved;
  const RotaryTable whole = of_queries(own, c, 3, 10);
  CHECK(whole.cosine.shape() == Shape{6, 5});
  for (Index row = 0; row < 6; ++row) {
    for (Index pair = 0; pair < 3; ++pair) CHECK(whole.sine.at(row, pair) == grown.sine.at(row, pair));
    for (Index pair = 3; pair < 5; ++pair) {
      CHECK(static_cast<double>(whole.cosine.at(row, pair)) == doctest::Approx(nth(expected, row + 3)));
      CHECK(whole.sine.at(row, pair) == 0);
    }
  }
  c.query_growth = 0;
  CHECK(query_growth(c, 100) == 1);
  // LongRoPE with a size of its own in long texts.
  const RotaryConfig longer{.scaling = RotaryConfig::Scaling::longrope,
                            .original_context = 8,
                            .magnitude = 1.25,
                            .divisors = {1, 2},
                            .long_divisors = {3, 4},
                            .long_magnitude = 1.5};
  CHECK(rotary_magnitude(in_text(longer, 8)) == 1.25);
  CHECK(rotary_magnitude(in_text(longer, 9)) == 1.5);
}

TEST_CASE("of an odd number of dimensions that are asked for one more turns, at the angles of the odd number") {
  RotaryConfig five;
  five.base = 100, five.width = 6, five.odd = true;
  const std::vector<double> turns = rotary_frequencies(five, 8);
  REQUIRE(turns.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(turns[i] == doctest::Approx(std::pow(100, -2.0 * static_cast<double>(i) / 5)));
  five.width = 0;  // seven of eight
  REQUIRE(rotary_frequencies(five, 8).size() == 4);
  CHECK(rotary_frequencies(five, 8)[3] == doctest::Approx(std::pow(100, -6.0 / 7)));
  CHECK(rescaled(five, RotaryConfig::Scaling::linear, 2, 10).odd);
}

}  // namespace headscope::rotary_test
