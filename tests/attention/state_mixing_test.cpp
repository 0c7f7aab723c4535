// The ops of state-space layers against loops in float64 that say what they are.

#include "core/attention/state_mixing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "tests/support/gradient_check.h"
#include "tests/support/random_tensor.h"

namespace headscope::state_mixing_test {

using testing::check_gradients;
using testing::GradientCheck;
using testing::Numbers;
using testing::random_tensor;

namespace {

struct Shapes {
  std::vector<Index> lengths;
  Index lanes, width, groups, states;
  bool one_pace, passes = true;
  Index rows() const {
    Index sum = 0;
    for (const Index n : lengths) sum += n;
    return sum;
  }
};

// Mamba's and Mamba-2's, then others; vectors hold 4, 8 or 16 numbers, chunks 32 tokens, tiles 64 channels.
const Shapes all_shapes[] = {
    {{7}, 5, 1, 1, 16, false},     {{4, 1, 6}, 20, 1, 1, 3, false}, {{35}, 4, 6, 2, 5, true},
    {{40, 3}, 2, 9, 1, 4, true},   {{33}, 3, 1, 3, 9, true},        {{5}, 2, 17, 2, 3, false},
    {{3, 2}, 130, 1, 2, 2, false}, {{6}, 2, 3, 1, 2, true, false},  {{66}, 17, 1, 1, 2, false, false}};

StateMixing random_mixing(const Shapes& s, std::uint64_t seed) {
  const Index n = s.rows();
  // Slices of one product, as the model has them.
  const Index x_end = s.lanes * s.width, b_end = x_end + s.groups * s.states, c_end = b_end + s.groups * s.states;
  const Tensor all = random_tensor({n, c_end}, seed);
  StateMixing in;
  in.x = all.slice(1, 0, x_end).reshape({n, s.lanes, s.width});
  in.b = all.slice(1, x_end, b_end).reshape({n, s.groups, s.states});
  in.c = all.slice(1, b_end, c_end).reshape({n, s.groups, s.states});
  in.delta = random_tensor({n, s.lanes}, seed + 1);
  in.a = random_tensor({s.lanes, s.one_pace ? 1 : s.states}, seed + 2);
  for (float& step : in.delta.mutable_values()) step = std::log1p(std::exp(step - 1));
  for (float& a : in.a.mutable_values()) a = -std::exp(0.7f * a);
  if (s.passes) in.d = random_tensor({s.lanes}, seed + 3);
  in.lengths = s.lengths;
  return in;
}

/// y row-major from x, delta, a, b, c and, where there is one, d.
Numbers definition(const Shapes& s, const std::vector<Numbers>& in) {
  const auto at = [](const Numbers& of, Index i) { return of[static_cast<std::size_t>(i)]; };
  const Numbers &x = in[0], &delta = in[1], &a = in[2], &b = in[3], &c = in[4];
  Numbers y(x.size());
  for (Index lane = 0; lane < s.lanes; ++lane) {
    const Index group = lane / (s.lanes / s.groups);
    Index begin = 0;
    for (const Index n : s.lengths) {
      Numbers h(static_cast<std::size_t>(s.states * s.width), 0.0);
      for (Index t = begin; t < begin + n; ++t)
        for (Index p = 0; p < s.width; ++p) {
          const Index here = (t * s.lanes + lane) * s.width + p;
          double sum = s.passes ? at(in[5], lane) * at(x, here) : 0;
          for (Index i = 0; i < s.states; ++i) {
            const double step = at(delta, t * s.lanes + lane), pace = at(a, s.one_pace ? lane : lane * s.states + i);
            double& state = h[static_cast<std::size_t>(i * s.width + p)];
            state = std::exp(step * pace) * state + step * at(b, (t * s.groups + group) * s.states + i) * at(x, here);
            sum += at(c, (t * s.groups + group) * s.states + i) * state;
          }
          y[static_cast<std::size_t>(here)] = sum;
        }
      begin += n;
    }
  }
  return y;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor left = a.packed(), right = b.packed();
  return left.shape() == right.shape() && std::ranges::equal(left.values(), right.values());
}

StateMixing rows_of(const StateMixing& in, Index begin, Index end) {
  StateMixing out = in;
  for (Tensor* each : {&out.x, &out.delta, &out.b, &out.c}) *each = each->slice(0, begin, end);
  out.lengths = {};
  return out;
}

}  // namespace

TEST_CASE("states of Mamba and Mamba-2, and the gradients of all that makes them") {
  std::uint64_t seed = 100;
  for (const Shapes& shapes : all_shapes) {
    CAPTURE(shapes.lanes);
    CAPTURE(shapes.width);
    CAPTURE(shapes.states);
    const StateMixing in = random_mixing(shapes, seed += 10);
    GradientCheck check;
    check.inputs = {in.x, in.delta, in.a, in.b, in.c};
    if (in.d.defined()) check.inputs.push_back(in.d);
    check.op = [&](Backend& backend) { return mix_states(backend, in); };
    check.definition = [&](const std::vector<Numbers>& inputs) { return definition(shapes, inputs); };
    check_gradients(check, seed);
  }
}

TEST_CASE("a text in pieces is the text, and texts beside each other are each alone, bit for bit") {
  for (const Shapes& shapes : all_shapes) {
    const StateMixing in = random_mixing(shapes, 7);
    Backend backend(2), one(1);
    const Tensor whole = mix_states(backend, in);
    CHECK(same_bits(mix_states(one, in), whole));
    Index begin = 0;
    for (const Index n : shapes.lengths) {
      const Tensor y = whole.slice(0, begin, begin + n);
      const StateMixing text = rows_of(in, begin, begin + n);
      Tensor last;
      CHECK(same_bits(mix_states(backend, text, &last), y));
      for (const Index cut : {Index{1}, n / 2, n - 1}) {
        if (cut < 1 || cut >= n) continue;
        Tensor state;
        CHECK(same_bits(mix_states(backend, rows_of(text, 0, cut), &state), y.slice(0, 0, cut)));
        const Tensor between = state;
        const std::vector<float> kept(between.values().begin(), between.values().end());
        CHECK(same_bits(mix_states(backend, rows_of(text, cut, n), &state), y.slice(0, cut, n)));
        CHECK(same_bits(state, last));
        CHECK(std::ranges::equal(between.values(), kept));  // whoever has it still, a branch say, finds what was there
      }
      begin += n;
    }
  }
}

TEST_CASE("implied attention times x, and d times x, is y") {
  for (const Shapes& shapes : all_shapes) {
    const StateMixing all = random_mixing(shapes, 11);
    const StateMixing in = rows_of(all, 0, shapes.lengths[0]);
    Backend backend(2);
    const Tensor y = mix_states(backend, in);
    const Index n = in.x.dim(0);
    for (Index lane = 0; lane < shapes.lanes; ++lane) {
      const Tensor map = implied_attention(in, lane);
      REQUIRE(map.shape() == Shape({n, n}));
      CHECK(same_bits(implied_attention(in, lane, n / 2), map.slice(0, n / 2, n)));
      for (Index t = 0; t < n; ++t)
        for (Index p = 0; p < shapes.width; ++p) {
          double sum = in.d.defined() ? static_cast<double>(in.d.at(lane) * in.x.at(t, lane, p)) : 0.0;
          for (Index s = 0; s < n; ++s)
            sum += static_cast<double>(map.at(t, s)) * static_cast<double>(in.x.at(s, lane, p));
          CHECK(y.at(t, lane, p) == doctest::Approx(sum).epsilon(2e-5).scale(1));
        }
      for (Index t = 0; t + 1 < n; ++t) CHECK(map.at(t, t + 1) == 0);
    }
  }
  // One state and one channel by hand: α_ts = C_t exp(a Σ Δ) Δ_s B_s.
  StateMixing in;
  in.x = Tensor::full({3, 1, 1}, 1);
  in.delta = Tensor::from({3, 1}, std::vector<float>{1.0f, 0.5f, 2.0f});
  in.a = Tensor::full({1, 1}, -1);
  in.b = Tensor::from({3, 1, 1}, std::vector<float>{1.0f, 2.0f, -1.0f});
  in.c = Tensor::from({3, 1, 1}, std::vector<float>{1.0f, 1.0f, 3.0f});
  const Tensor map = implied_attention(in, 0);
  CHECK(map.at(2, 0) == doctest::Approx(3 * std::exp(-2.5)));
  CHECK(map.at(2, 1) == doctest::Approx(3 * std::exp(-2.0)));
  CHECK(map.at(2, 2) == doctest::Approx(-6));
  CHECK(map.at(1, 0) == doctest::Approx(std::exp(-0.5)));
}

TEST_CASE("states that have all gone give weights of exactly 0, and a pass that is stopped says so") {
  const Shapes shapes{{50}, 1, 1, 1, 4, false};
  StateMixing in = random_mixing(shapes, 3);
  in.a = Tensor::full({1, 4}, -30);
  in.delta = Tensor::full({50, 1}, 1);
  const Tensor map = implied_attention(in, 0);
  CHECK(map.at(49, 0) == 0);
  CHECK(map.at(49, 48) != 0);
  std::stop_source stop;
  stop.request_stop();
  Backend backend(1);
  CHECK_THROWS_AS(mix_states(backend, in, nullptr, stop.get_token()), Cancelled);
  CHECK_THROWS_AS(implied_attention(in, 0, 0, stop.get_token()), Cancelled);
}

TEST_CASE("the short convolution: its sum, its gradients, texts and what came before") {
  const std::vector<Index> lengths{5, 2, 70};
  const Index rows = 77, channels = 67, taps = 4;
  const Tensor wide = random_tensor({rows, channels + 3}, 1);
  const Tensor x = wide.slice(1, 2, channels + 2), weight = random_tensor({channels, taps}, 2),
               bias = random_tensor({channels}, 3);
  Backend backend(2);
  const Tensor y = causal_convolution(backend, x, weight, bias, {}, lengths);
  Index begin = 0;
  for (const Index n : lengths) {
    for (Index t = 0; t < n; ++t)
      for (Index c = 0; c < channels; ++c) {
        double sum = static_cast<double>(bias.at(c));
        for (Index j = 0; j < taps; ++j)
          if (t - taps + 1 + j >= 0)
            sum += static_cast<double>(weight.at(c, j)) * static_cast<double>(x.at(begin + t - taps + 1 + j, c));
        CHECK(y.at(begin + t, c) == doctest::Approx(sum).epsilon(1e-5).scale(1));
      }
    const Tensor text = x.slice(0, begin, begin + n);
    CHECK(same_bits(causal_convolution(backend, text, weight, bias), y.slice(0, begin, begin + n)));
    for (Index cut = 1; cut < n; cut += 13) {
      Tensor before = Tensor::zeros({taps - 1, channels});
      for (Index k = 1; k < taps; ++k)
        for (Index c = 0; c < channels && cut >= k; ++c) before.ref(taps - 1 - k, c) = text.at(cut - k, c);
      CHECK(same_bits(causal_convolution(backend, text.slice(0, cut, n), weight, bias, before),
                      y.slice(0, begin + cut, begin + n)));
    }
    begin += n;
  }

  const std::vector<Index> short_texts{4, 1, 3};
  for (const bool biased : {true, false}) {
    const Index few = 5;
    const Tensor in = random_tensor({8, few + 1}, 4).slice(1, 0, few), w = random_tensor({few, 3}, 5);
    GradientCheck check;
    check.inputs = {in, w};
    if (biased) check.inputs.push_back(random_tensor({few}, 6));
    check.op = [&](Backend& on) {
      return causal_convolution(on, in, w, biased ? check.inputs[2] : Tensor(), {}, short_texts);
    };
    check.definition = [&](const std::vector<Numbers>& numbers) {
      Numbers out;
      Index first = 0;
      for (const Index n : short_texts) {
        for (Index t = 0; t < n; ++t)
          for (Index c = 0; c < few; ++c) {
            double sum = biased ? numbers[2][static_cast<std::size_t>(c)] : 0;
            for (Index j = std::max<Index>(0, 2 - t); j < 3; ++j)
              sum += numbers[1][static_cast<std::size_t>(c * 3 + j)] *
                     numbers[0][static_cast<std::size_t>((first + t - 2 + j) * few + c)];
            out.push_back(sum);
          }
        first += n;
      }
      return out;
    };
    check_gradients(check, 9);
  }
}

TEST_CASE("steps and decays: softplus of a sum, minus an exponential, and their gradients") {
  const Index rows = 6, channels = 70;
  Tensor x = random_tensor({rows, channels + 1}, 1);
  for (Index i = 0; i < rows; ++i) x.ref(i, i) *= 12;  // far out on either side
  x.ref(0, 1) = 45;
  x.ref(0, 2) = -45;
  x.ref(0, 3) = -120;
  const Tensor view = x.slice(1, 0, channels);
  for (const bool biased : {true, false}) {
    GradientCheck check;
    check.inputs = {view};
    if (biased) check.inputs.push_back(random_tensor({channels}, 2));
    check.op = [&](Backend& backend) { return softplus(backend, view, biased ? check.inputs[1] : Tensor()); };
    check.definition = [&](const std::vector<Numbers>& numbers) {
      Numbers out;
      for (std::size_t i = 0; i < numbers[0].size(); ++i) {
        const double z = numbers[0][i] + (biased ? numbers[1][i % static_cast<std::size_t>(channels)] : 0);
        out.push_back(z > 40 ? z : std::log1p(std::exp(z)));
      }
      return out;
    };
    check_gradients(check, 5);
  }
  Backend backend(1);
  CHECK(softplus(backend, view).at(0, 1) == 45.0f);
  CHECK(softplus(backend, view).at(0, 2) == doctest::Approx(std::exp(-45.0)).epsilon(1e-5));

  GradientCheck check;
  const Tensor logs = random_tensor({5, 7}, 3);
  check.inputs = {logs};
  check.op = [&](Backend& on) { return decay_rates(on, logs); };
  check.definition = [](const std::vector<Numbers>& numbers) {
    Numbers out;
    for (const double each : numbers[0]) out.push_back(-std::exp(each));
    return out;
  };
  check_gradients(check, 6);
}

}  // namespace headscope::state_mixing_test
