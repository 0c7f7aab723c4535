#include "core/attention/recurrent_cells.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "tests/support/random_tensor.h"

namespace headscope::recurrent_cells_test {

using testing::random_tensor;

namespace {

/// ‖∂h_t / ∂x_s‖ by central differences.
template <class Run>
double by_differences(const Run& run, const Tensor& x, Index t, Index s) {
  constexpr float step = 1e-2f;
  double sum = 0;
  for (Index j = 0; j < x.dim(1); ++j) {
    Tensor up = x.copy(), down = x.copy();
    up.ref(s, j) += step;
    down.ref(s, j) -= step;
    const Tensor a = run(up).hidden, b = run(down).hidden;
    for (Index i = 0; i < a.dim(1); ++i) {
      const double slope =
          (static_cast<double>(a.at(t, i)) - static_cast<double>(b.at(t, i))) / (2 * static_cast<double>(step));
      sum += slope * slope;
    }
  }
  return std::sqrt(sum);
}

Tensor numbers(Shape shape, std::vector<float> values) {
  return Tensor::from(shape, values);
}

}  // namespace

TEST_CASE("one step of each cell by hand") {
  const RnnCell rnn{numbers({1, 1}, {2}), numbers({1, 1}, {0.5f}), numbers({1}, {0.1f})};
  const Tensor x = numbers({2, 1}, {0.3f, -1});
  const Tensor h = run_rnn(rnn, x).hidden;
  const double first = std::tanh(2 * 0.3 + 0.1);
  CHECK(h.at(0, 0) == doctest::Approx(first));
  CHECK(h.at(1, 0) == doctest::Approx(std::tanh(-2 + 0.5 * first + 0.1)));

  // Input gate σ(x), forget gate σ(2), value tanh(x), output gate σ(0) = ½.
  const LstmCell lstm{numbers({4, 1}, {1, 0, 1, 0}), Tensor::zeros({4, 1}), numbers({4}, {0, 2, 0, 0})};
  const CellRun run = run_lstm(lstm, x);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double c0 = sigmoid(0.3) * std::tanh(0.3), c1 = sigmoid(2) * c0 + sigmoid(-1) * std::tanh(-1);
  CHECK(run.cell.at(0, 0) == doctest::Approx(c0));
  CHECK(run.cell.at(1, 0) == doctest::Approx(c1));
  CHECK(run.hidden.at(1, 0) == doctest::Approx(0.5 * std::tanh(c1)));
  CHECK(run.gates.at(1, 1) == doctest::Approx(sigmoid(2)));
}

TEST_CASE("influence is the norm of the exact derivative") {
  const Tensor x = random_tensor({5, 3}, 1);
  const RnnCell rnn = random_rnn(3, 4, 1.2, 2);
  const LstmCell lstm = random_lstm(3, 4, 1.1, 1, 3);
  const Tensor of_rnn = rnn_influence(rnn, x), of_lstm = lstm_influence(lstm, x);
  for (Index t = 0; t < 5; ++t)
    for (Index s = 0; s < 5; ++s) {
      CAPTURE(t);
      CAPTURE(s);
      if (s > t) {
        CHECK(of_rnn.at(t, s) == 0);
        CHECK(of_lstm.at(t, s) == 0);
        continue;
      }
      const auto run_a = [&](const Tensor& in) { return run_rnn(rnn, in); };
      const auto run_b = [&](const Tensor& in) { return run_lstm(lstm, in); };
      CHECK(of_rnn.at(t, s) == doctest::Approx(by_differences(run_a, x, t, s)).epsilon(2e-3));
      CHECK(of_lstm.at(t, s) == doctest::Approx(by_differences(run_b, x, t, s)).epsilon(2e-3));
    }
  const Tensor last = lstm_influence(lstm, x, true);
  REQUIRE(last.dim(0) == 1);
  for (Index s = 0; s < 5; ++s) CHECK(last.at(0, s) == of_lstm.at(4, s));
}

TEST_CASE("an RNN forgets by a power of its gain, an LSTM with open forget gates keeps") {
  const Tensor x = Tensor::zeros({40, 4});
  // At x = 0 every state is 0 and tanh is the identity: ∂h_t/∂x_s = W_h^(t−s) W_x.
  RnnCell rnn = random_rnn(4, 4, 1, 1);
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 4; ++j) rnn.w_h.ref(i, j) = i == j ? 0.8f : 0.0f;
  const Tensor faded = rnn_influence(rnn, x, true);
  CHECK(faded.at(0, 0) / faded.at(0, 39) == doctest::Approx(std::pow(0.8, 39)).epsilon(1e-4));
  const Tensor open = lstm_influence(random_lstm(4, 4, 0, 20, 1), x, true);
  CHECK(open.at(0, 0) == doctest::Approx(open.at(0, 39)).epsilon(1e-5));
  const Tensor shut = lstm_influence(random_lstm(4, 4, 0, 0, 1), x, true);  // σ(0) = ½ a step
  CHECK(shut.at(0, 29) / shut.at(0, 39) == doctest::Approx(std::pow(0.5, 10)).epsilon(1e-4));
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(rnn_influence(rnn, x, true, stop.get_token()), Cancelled);
}

}  // namespace headscope::recurrent_cells_test
