// A step of a gated recurrent unit and additive attention: worked out by hand, against their definitions in float64,
// and their gradients against central differences.

#include "core/attention/seq2seq_ops.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/support/gradient_check.h"
#include "tests/support/random_tensor.h"

namespace headscope::seq2seq_ops_test {

using namespace testing;

namespace {
using Inputs = std::vector<Numbers>;

double sigma(double x) {
  return 1 / (1 + std::exp(-x));
}

/// x, u (rows, 3 h), state (rows, h).
Numbers gru_by_definition(const Inputs& in, std::size_t rows, std::size_t h, const std::vector<std::uint8_t>& alive) {
  Numbers out;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t c = 0; c < h; ++c) {
      const auto x = [&](std::size_t gate) { return in[0][(row * 3 + gate) * h + c]; };
      const auto u = [&](std::size_t gate) { return in[1][(row * 3 + gate) * h + c]; };
      const double before = in[2][row * h + c], z = sigma(x(0) + u(0)), r = sigma(x(1) + u(1));
      const double n = std::tanh(x(2) + r * u(2));
      out.push_back(alive.empty() || alive[row] != 0 ? z * before + (1 - z) * n : before);
    }
  return out;
}

/// query (B, a), keys (S · B, a), w (a), values (S · B, h).
Numbers context_by_definition(const Inputs& in, std::size_t a, std::size_t h, const std::vector<Index>& lengths) {
  Numbers out;
  const std::size_t texts = lengths.size();
  for (std::size_t b = 0; b < texts; ++b) {
    Numbers share;
    double sum = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(lengths[b]); ++j) {
      double score = 0;
      for (std::size_t c = 0; c < a; ++c)
        score += in[2][c] * std::tanh(in[0][b * a + c] + in[1][(j * texts + b) * a + c]);
      share.push_back(std::exp(score));
      sum += share.back();
    }
    for (std::size_t c = 0; c < h; ++c) {
      double mixed = 0;
      for (std::size_t j = 0; j < share.size(); ++j) mixed += share[j] / sum * in[3][(j * texts + b) * h + c];
      out.push_back(mixed);
    }
  }
  return out;
}
}  // namespace

TEST_CASE("a step of a gated recurrent unit by hand") {
  Backend backend(1);
  const float x[] = {0, 0, 0}, u[] = {0, 0, 2}, state[] = {3};
  // z = r = σ(0) = 0.5, n = tanh(0.5 · 2), h' = 0.5 · 3 + 0.5 · tanh 1 = 1.5 + 0.3808
  const Tensor after = gru_step(backend, Tensor::from({1, 3}, x), Tensor::from({1, 3}, u), Tensor::from({1, 1}, state));
  CHECK(after.at(0, 0) == doctest::Approx(1.8808).epsilon(1e-4));
  // z near 1 keeps the state, near 0 takes the new one, whatever it was.
  const float keeps[] = {30, 0, 5}, takes[] = {-30, 0, 5};
  const auto step = [&](const float(&in)[3]) {
    return gru_step(backend, Tensor::from({1, 3}, in), Tensor::zeros({1, 3}), Tensor::from({1, 1}, state)).at(0, 0);
  };
  CHECK(step(keeps) == doctest::Approx(3));
  CHECK(step(takes) == doctest::Approx(std::tanh(5.0)));
  const std::uint8_t over[] = {0};
  CHECK(gru_step(backend, Tensor::from({1, 3}, takes), Tensor::zeros({1, 3}), Tensor::from({1, 1}, state), over)
            .at(0, 0) == 3);
}

TEST_CASE("gradients: a step of a gated recurrent unit, of rows of a longer tensor, some of which are over") {
  std::uint64_t seed = 300;
  for (const auto& [rows, h] : {std::pair<Index, Index>{1, 1}, {3, 5}, {40, 33}}) {
    for (const bool some : {false, true}) {
      CAPTURE(rows);
      CAPTURE(some);
      std::vector<std::uint8_t> alive;
      for (Index row = 0; some && row < rows; ++row) alive.push_back(row % 3 != 1);
      const Tensor x = random_tensor({3 * rows, 3 * h}, ++seed).slice(0, rows, 2 * rows),
                   u = random_tensor({rows, 3 * h}, ++seed), state = random_tensor({rows, h}, ++seed);
      GradientCheck check;
      check.inputs = {x, u, state};
      check.op = [=](Backend& b) { return gru_step(b, x, u, state, alive); };
      check.definition = [=](const Inputs& in) {
        return gru_by_definition(in, static_cast<std::size_t>(rows), static_cast<std::size_t>(h), alive);
      };
      check_gradients(check, ++seed);
    }
  }
}

TEST_CASE("additive attention by hand") {
  Backend backend(1);
  // Two states of a text of two, and the first of a text of one: keys 0 and 1, query 0, w = 2.
  const float keys[] = {0, 0, 1, 9}, w[] = {2}, values[] = {10, 7, 20, 99};
  const Index lengths[] = {2, 1};
  Tensor weights;
  const Tensor context = additive_context(backend, Tensor::zeros({2, 1}), Tensor::from({4, 1}, keys),
                                          Tensor::from({1}, w), Tensor::from({4, 1}, values), lengths, &weights);
  const double second = std::exp(2 * std::tanh(1.0)), share = second / (1 + second);  // 0.821
  CHECK(weights.at(0, 0) == doctest::Approx(1 - share));
  CHECK(weights.at(0, 1) == doctest::Approx(share));
  CHECK(context.at(0, 0) == doctest::Approx(10 + 10 * share));
  CHECK(weights.at(1, 0) == 1);
  CHECK(weights.at(1, 1) == 0);
  CHECK(context.at(1, 0) == 7);
}

TEST_CASE("gradients: additive attention, of texts of different lengths; every row of weights sums to 1") {
  std::uint64_t seed = 400;
  for (const auto& [texts, states, a, h] :
       {std::tuple<Index, Index, Index, Index>{1, 1, 1, 1}, {3, 4, 5, 2}, {9, 21, 17, 6}}) {
    CAPTURE(texts);
    std::vector<Index> lengths;
    for (Index b = 0; b < texts; ++b) lengths.push_back(b == 0 ? states : 1 + b * 7 % states);
    const Tensor query = random_tensor({texts, a}, ++seed), keys = random_tensor({states * texts, a}, ++seed),
                 w = random_tensor({a}, ++seed), values = random_tensor({states * texts, h}, ++seed);
    GradientCheck check;
    check.inputs = {query, keys, w, values};
    check.op = [=](Backend& b) { return additive_context(b, query, keys, w, values, lengths); };
    check.definition = [=](const Inputs& in) {
      return context_by_definition(in, static_cast<std::size_t>(a), static_cast<std::size_t>(h), lengths);
    };
    check_gradients(check, ++seed);
    Backend backend(2);
    Tensor weights;
    additive_context(backend, query, keys, w, values, lengths, &weights);
    for (Index b = 0; b < texts; ++b) {
      double sum = 0;
      for (Index j = 0; j < states; ++j) {
        sum += static_cast<double>(weights.at(b, j));
        CHECK((weights.at(b, j) > 0) == (j < lengths[static_cast<std::size_t>(b)]));
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-6));
    }
  }
}

TEST_CASE("gradients: rows below one another, one of them twice") {
  const Tensor a = random_tensor({2, 3}, 500), b = random_tensor({4, 3}, 501);
  GradientCheck check;
  check.inputs = {a, b};
  check.op = [=](Backend& on) { return stack_rows(on, {a, b, a}); };
  check.definition = [](const Inputs& in) {
    Numbers out = in[0];
    out.insert(out.end(), in[1].begin(), in[1].end());
    out.insert(out.end(), in[0].begin(), in[0].end());
    return out;
  };
  check_gradients(check, 502);
}

}  // namespace headscope::seq2seq_ops_test
