// The gated delta rule against a loop in float64 that says what it is, and against numbers of the `transformers`
// library (tests/reference/make_mixers.py).

#include "core/attention/gated_delta.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/attention/delta_lanes.h"
#include "core/attention/state_patterns.h"
#include "core/base/error.h"
#include "core/io/safetensors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/paths.h"
#include "tests/support/random_tensor.h"

namespace headscope::gated_delta_test {

using testing::check_gradients;
using testing::GradientCheck;
using testing::Numbers;
using testing::random_tensor;

namespace {

struct Shapes {
  std::vector<Index> lengths;
  Index heads, groups, keys, values;
  Index rows() const {
    Index sum = 0;
    for (const Index n : lengths) sum += n;
    return sum;
  }
};

// Vectors hold 4, 8 or 16 numbers, stretches 32 tokens.
const Shapes all_shapes[] = {
    {{7}, 2, 1, 4, 5}, {{4, 1, 6}, 4, 2, 3, 9}, {{35}, 1, 1, 6, 2}, {{40, 3}, 3, 3, 2, 17}, {{66}, 2, 2, 17, 3}};

/// Rows of q and k of about unit length, as a model has them.
GatedDelta random_delta(const Shapes& s, std::uint64_t seed) {
  const Index n = s.rows(), width = s.groups * s.keys;
  const Tensor all = random_tensor({n, 2 * width + s.heads * s.values}, seed);  // slices of one product
  GatedDelta in;
  in.q = all.slice(1, 0, width).reshape({n, s.groups, s.keys});
  in.k = all.slice(1, width, 2 * width).reshape({n, s.groups, s.keys});
  in.v = all.slice(1, 2 * width, 2 * width + s.heads * s.values).reshape({n, s.heads, s.values});
  for (Tensor* each : {&in.q, &in.k})
    for (Index t = 0; t < n; ++t)
      for (Index g = 0; g < s.groups; ++g) {
        float sum = 0;
        for (Index i = 0; i < s.keys; ++i) sum += each->at(t, g, i) * each->at(t, g, i);
        for (Index i = 0; i < s.keys; ++i) each->ref(t, g, i) /= std::sqrt(sum);
      }
  in.delta = random_tensor({n, s.heads}, seed + 1);
  in.beta = random_tensor({n, s.heads}, seed + 2);
  in.a = random_tensor({s.heads}, seed + 3);
  for (float& x : in.delta.mutable_values()) x = std::log1p(std::exp(x - 1));
  for (float& x : in.beta.mutable_values()) x = 2 / (1 + std::exp(-x));  // up to 2
  for (float& x : in.a.mutable_values()) x = -std::exp(0.7f * x);
  in.lengths = s.lengths;
  return in;
}

/// S_t = e^(Δ a) S_(t−1) (I − β k kᵀ) + β v kᵀ with S (V, K), o = S q.
Numbers definition(const Shapes& s, const std::vector<Numbers>& in) {
  const auto at = [](const Numbers& of, Index i) { return of[static_cast<std::size_t>(i)]; };
  const Numbers &q = in[0], &k = in[1], &v = in[2], &delta = in[3], &a = in[4], &beta = in[5];
  Numbers out(v.size());
  for (Index head = 0; head < s.heads; ++head) {
    const Index group = head / (s.heads / s.groups);
    Index begin = 0;
    for (const Index n : s.lengths) {
      std::vector<Numbers> state(static_cast<std::size_t>(s.values), Numbers(static_cast<std::size_t>(s.keys), 0.0));
      for (Index t = begin; t < begin + n; ++t) {
        const Index here = t * s.heads + head, key = (t * s.groups + group) * s.keys;
        const double keep = std::exp(at(delta, here) * at(a, head)), rate = at(beta, here);
        for (Index p = 0; p < s.values; ++p) {
          Numbers& row = state[static_cast<std::size_t>(p)];
          double met = 0, given = 0;
          for (Index i = 0; i < s.keys; ++i) met += row[static_cast<std::size_t>(i)] * at(k, key + i);
          for (Index i = 0; i < s.keys; ++i) {
            double& x = row[static_cast<std::size_t>(i)];
            x = keep * (x - rate * met * at(k, key + i)) + rate * at(v, here * s.values + p) * at(k, key + i);
            given += x * at(q, key + i);
          }
          out[static_cast<std::size_t>(here * s.values + p)] = given;
        }
      }
      begin += n;
    }
  }
  return out;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor left = a.packed(), right = b.packed();
  return left.shape() == right.shape() && std::ranges::equal(left.values(), right.values());
}

GatedDelta rows_of(const GatedDelta& in, Index begin, Index end) {
  GatedDelta out = in;
  for (Tensor* each : {&out.q, &out.k, &out.v, &out.delta, &out.beta}) *each = each->slice(0, begin, end);
  out.lengths = {};
  return out;
}

}  // namespace

TEST_CASE("the gated delta rule, and the gradients of all that makes it") {
  std::uint64_t seed = 300;
  for (const Shapes& shapes : all_shapes) {
    CAPTURE(shapes.heads);
    CAPTURE(shapes.keys);
    CAPTURE(shapes.values);
    const GatedDelta in = random_delta(shapes, seed += 10);
    GradientCheck check;
    check.inputs = {in.q, in.k, in.v, in.delta, in.a, in.beta};
    check.op = [&](Backend& backend) { return mix_delta(backend, in); };
    check.definition = [&](const std::vector<Numbers>& inputs) { return definition(shapes, inputs); };
    check_gradients(check, seed);
  }
}

TEST_CASE("a text in pieces is the text under the delta rule, and texts beside each other are each alone") {
  for (const Shapes& shapes : all_shapes) {
    const GatedDelta in = random_delta(shapes, 7);
    Backend backend(2), one(1);
    const Tensor whole = mix_delta(backend, in);
    CHECK(same_bits(mix_delta(one, in), whole));
    Index begin = 0;
    for (const Index n : shapes.lengths) {
      const Tensor o = whole.slice(0, begin, begin + n);
      const GatedDelta text = rows_of(in, begin, begin + n);
      Tensor last;
      CHECK(same_bits(mix_delta(backend, text, &last), o));
      for (const Index cut : {Index{1}, n / 2, n - 1}) {
        if (cut < 1 || cut >= n) continue;
        Tensor state;
        CHECK(same_bits(mix_delta(backend, rows_of(text, 0, cut), &state), o.slice(0, 0, cut)));
        const Tensor between = state;
        const std::vector<float> kept(between.values().begin(), between.values().end());
        CHECK(same_bits(mix_delta(backend, rows_of(text, cut, n), &state), o.slice(0, cut, n)));
        CHECK(same_bits(state, last));
        CHECK(std::ranges::equal(between.values(), kept));
      }
      begin += n;
    }
  }
}

TEST_CASE("the map of a delta rule times values is its output") {
  for (const Shapes& shapes : all_shapes) {
    const GatedDelta all = random_delta(shapes, 11), in = rows_of(all, 0, shapes.lengths[0]);
    Backend backend(2);
    const Tensor o = mix_delta(backend, in);
    const Index n = in.v.dim(0);
    for (Index head = 0; head < shapes.heads; ++head) {
      const Tensor map = implied_attention(in, head);
      REQUIRE(map.shape() == Shape({n, n}));
      CHECK(same_bits(implied_attention(in, head, n / 2), map.slice(0, n / 2, n)));
      for (Index t = 0; t < n; ++t)
        for (Index p = 0; p < shapes.values; ++p) {
          double sum = 0;
          for (Index s = 0; s < n; ++s)
            sum += static_cast<double>(map.at(t, s)) * static_cast<double>(in.v.at(s, head, p));
          CHECK(o.at(t, head, p) == doctest::Approx(sum).epsilon(2e-5).scale(1));
        }
      for (Index t = 0; t + 1 < n; ++t) CHECK(map.at(t, t + 1) == 0);
    }
    CHECK(same_bits(mean_patterns(backend, in, shapes.heads, {1, in.v.dim(0)}).select(0, 0),
                    implied_attention(in, 0, 1)));
  }
  // By hand, K = 2: the second key is the first again, so that with β = 1 what stood there is replaced.
  GatedDelta in;
  in.k = Tensor::from({3, 1, 2}, std::vector<float>{1, 0, 1, 0, 0, 1});
  in.q = Tensor::from({3, 1, 2}, std::vector<float>{1, 0, 1, 0, 1, 2});
  in.v = Tensor::zeros({3, 1, 1});
  in.delta = Tensor::full({3, 1}, std::log(2.0f));
  in.a = Tensor::full({1}, -1);  // half is left
  in.beta = Tensor::from({3, 1}, std::vector<float>{0.5f, 1.0f, 0.25f});
  const Tensor map = implied_attention(in, 0);
  CHECK(map.at(0, 0) == doctest::Approx(0.5));
  CHECK(map.at(1, 1) == doctest::Approx(1));
  CHECK(map.at(1, 0) == doctest::Approx(0));
  CHECK(map.at(2, 2) == doctest::Approx(0.5));
  CHECK(map.at(2, 1) == doctest::Approx(0.5));
  in.beta.ref(1, 0) = 2;  // beyond 1 it comes back with the other sign
  CHECK(implied_attention(in, 0).at(1, 0) == doctest::Approx(-0.25));
}

TEST_CASE("a changed cell of a delta rule's map is what its head does then, with gradients") {
  const Shapes shapes{{6}, 2, 1, 3, 2};
  const GatedDelta in = random_delta(shapes, 5);
  GatedDelta one = in;
  one.lengths = {};
  Backend backend(2);
  const Tensor pattern = mean_patterns(backend, one, shapes.heads, {0, one.v.dim(0)});
  Tensor now = pattern.copy();
  now.ref(1, 4, 2) = 0.75f;
  const Tensor whole = mix_delta(backend, one);
  Tensor o = whole.copy();
  remix(backend, one, pattern, now, 0, o);
  for (Index t = 0; t < 6; ++t)
    for (Index p = 0; p < 2; ++p) {
      CHECK(o.at(t, 0, p) == whole.at(t, 0, p));  // the other head's own numbers
      const double change =
          t == 4 ? (0.75 - static_cast<double>(pattern.at(1, 4, 2))) * static_cast<double>(in.v.at(2, 1, p)) : 0;
      CHECK(o.at(t, 1, p) == doctest::Approx(static_cast<double>(whole.at(t, 1, p)) + change).epsilon(1e-5).scale(1));
    }

  // Σ over values of the edited map's output: the cell that was set does not follow the keys, the others do.
  GradientCheck check;
  check.inputs = {in.q, in.k, in.v, in.delta, in.a, in.beta, now};
  check.op = [&](Backend& on) { return mixed_by(on, one, pattern, now); };
  check.definition = [&](const std::vector<Numbers>& inputs) {
    Numbers out = definition(shapes, inputs);
    std::vector<Numbers> units = inputs;  // α(4, 2) of head 1 as the definition has it
    const auto n = std::size_t{6};
    Shapes wide = shapes;
    wide.values = 6;
    units[2].assign(n * 2 * n, 0.0);
    for (std::size_t s = 0; s < n; ++s)
      for (std::size_t head = 0; head < 2; ++head) units[2][(s * 2 + head) * n + s] = 1;
    const double alpha = definition(wide, units)[(4 * 2 + 1) * n + 2];
    for (std::size_t p = 0; p < 2; ++p)
      out[(4 * 2 + 1) * 2 + p] += (inputs[6][(1 * n + 4) * n + 2] - alpha) * inputs[2][(2 * 2 + 1) * 2 + p];
    // Where nothing was edited the map passes on what is put there all the same: ∂ at the pattern's own value.
    for (std::size_t head = 0; head < 2; ++head)
      for (std::size_t t = 0; t < n; ++t)
        for (std::size_t s = 0; s < n; ++s) {
          if (head == 1 && t == 4 && s == 2) continue;
          const double moved =
              inputs[6][(head * n + t) * n + s] -
              static_cast<double>(now.at(static_cast<Index>(head), static_cast<Index>(t), static_cast<Index>(s)));
          for (std::size_t p = 0; p < 2; ++p) out[(t * 2 + head) * 2 + p] += moved * inputs[2][(s * 2 + head) * 2 + p];
        }
    return out;
  };
  check_gradients(check, 21);
}

TEST_CASE("vectors of unit length, and sigmoids, with their gradients") {
  const Tensor x = random_tensor({5, 2, 3}, 4);
  GradientCheck check;
  check.inputs = {x};
  check.op = [&](Backend& on) { return unit_rows(on, x, 1e-3, 0.5f); };
  check.definition = [](const std::vector<Numbers>& in) {
    Numbers out = in[0];
    for (std::size_t row = 0; row < out.size(); row += 3) {
      double sum = 1e-3;
      for (std::size_t i = 0; i < 3; ++i) sum += in[0][row + i] * in[0][row + i];
      for (std::size_t i = 0; i < 3; ++i) out[row + i] *= 0.5 / std::sqrt(sum);
    }
    return out;
  };
  check_gradients(check, 1);
  Tensor wide = random_tensor({4, 20}, 5);
  wide.ref(0, 0) = 40, wide.ref(0, 1) = -40;
  const Tensor view = wide.slice(1, 0, 19);
  GradientCheck other;
  other.inputs = {view};
  other.op = [&](Backend& on) { return sigmoids(on, view, 2); };
  other.definition = [](const std::vector<Numbers>& in) {
    Numbers out;
    for (const double z : in[0]) out.push_back(2 / (1 + std::exp(-z)));
    return out;
  };
  check_gradients(other, 2);
  Backend backend(1);
  CHECK(sigmoids(backend, view).at(0, 1) == doctest::Approx(std::exp(-40.0)).epsilon(1e-5));
}

TEST_CASE("a delta rule that forgets gives weights of exactly 0, and a pass that is stopped says so") {
  GatedDelta in = random_delta({{50}, 1, 1, 4, 2}, 3);
  in.lengths = {};
  in.a = Tensor::full({1}, -30);
  in.delta = Tensor::full({50, 1}, 1);
  const Tensor map = implied_attention(in, 0);
  CHECK(map.at(49, 0) == 0);
  CHECK(map.at(49, 48) != 0);
  std::stop_source stop;
  stop.request_stop();
  Backend backend(1);
  CHECK_THROWS_AS(mix_delta(backend, in, nullptr, stop.get_token()), Cancelled);
  CHECK_THROWS_AS(implied_attention(in, 0, 0, stop.get_token()), Cancelled);
}

TEST_CASE("what the transformers library computes of a gated delta rule") {
  const SafetensorsFile file = SafetensorsFile::open(testing::reference("mixers/gated_delta.safetensors"));
  const auto take = [&](const char* name) { return file.tensor(name); };
  Backend backend(2);
  GatedDelta in;
  const Tensor q = take("query"), v = take("value");
  in.q = unit_rows(backend, q, 1e-6, 1 / std::sqrt(static_cast<float>(q.dim(2))));
  in.k = unit_rows(backend, take("key"), 1e-6);
  in.v = v;
  in.beta = sigmoids(backend, take("b"));
  in.delta = softplus(backend, take("a"), take("dt_bias"));
  in.a = decay_rates(backend, take("A_log"));
  Tensor state;
  const Tensor o = mix_delta(backend, in, &state), truth = take("output"), last = take("state"), map = take("pattern");
  for (Index i = 0; i < o.size(); ++i) CHECK(o.data()[i] == doctest::Approx(truth.data()[i]).epsilon(1e-5).scale(0.1));
  for (Index i = 0; i < state.size(); ++i)
    CHECK(state.data()[i] == doctest::Approx(last.data()[i]).epsilon(1e-5).scale(0.1));
  const Tensor found = mean_patterns(backend, in, v.dim(1), {0, v.dim(0)});
  for (Index i = 0; i < found.size(); ++i)
    CHECK(found.packed().data()[i] == doctest::Approx(map.data()[i]).epsilon(1e-5).scale(0.1));
}

TEST_CASE("gated delta rule: the sigmoid of what is not finite is its limit, and of no number none") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t n : {5U, 33U}) {  // a vector, and what is left of one
    std::vector<float> x(n, 0.0f), out(n);
    x[0] = none, x[1] = infinity, x[2] = -infinity, x[3] = -1e30f, x[n - 1] = none;
    delta_lanes::sigmoid(x.data(), static_cast<Index>(n), 2, out.data());
    CHECK(std::isnan(out[0]));
    CHECK(out[1] == 2);
    CHECK(out[2] < 1e-37f);
    CHECK(out[3] < 1e-37f);
    CHECK(std::isnan(out[n - 1]));
  }
}

}  // namespace headscope::gated_delta_test
