#include "core/attention/recurrent_cells.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/tensor/matrices.h"

namespace headscope {

namespace {

using Numbers = std::vector<double>;

Tensor gaussian(Index rows, Index columns, double spread, Random& random) {
  Tensor out = Tensor::uninitialized({rows, columns});
  for (float& value : out.mutable_values()) value = static_cast<float>(spread * static_cast<double>(random.normal()));
  return out;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// W_x x_t + W_h h + b, row `t` of x.
Numbers before_gates(const Tensor& w_x, const Tensor& w_h, const Tensor& bias, const Tensor& x, Index t,
                     const Numbers& h) {
  Numbers out(static_cast<std::size_t>(w_x.dim(0)));
  for (Index i = 0; i < w_x.dim(0); ++i) {
    double sum = static_cast<double>(bias.at(i));
    for (Index j = 0; j < w_x.dim(1); ++j) sum += static_cast<double>(w_x.at(i, j)) * static_cast<double>(x.at(t, j));
    for (Index j = 0; j < w_h.dim(1); ++j) sum += static_cast<double>(w_h.at(i, j)) * nth(h, j);
    nth(out, i) = sum;
  }
  return out;
}

void check(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
}

/// Calls `row(t, out)` for every wanted last position; `out` is where ‖∂h_t/∂x_s‖ goes.
template <class Row>
Tensor influence(Index n, bool only_last, const Row& row) {
  Tensor out = Tensor::zeros({only_last ? std::min<Index>(n, 1) : n, n});
  for (Index r = 0; r < out.dim(0); ++r) row(only_last ? n - 1 : r, r, out);
  return out;
}

}  // namespace

RnnCell random_rnn(Index d, Index h, double gain, std::uint64_t seed) {
  Random random(seed);
  RnnCell cell;
  cell.w_x = gaussian(h, d, 1 / std::sqrt(static_cast<double>(d)), random);
  cell.w_h = gaussian(h, h, gain / std::sqrt(static_cast<double>(h)), random);
  cell.bias = Tensor::zeros({h});
  return cell;
}

LstmCell random_lstm(Index d, Index h, double gain, double forget, std::uint64_t seed) {
  Random random(seed);
  LstmCell cell;
  cell.w_x = gaussian(4 * h, d, 1 / std::sqrt(static_cast<double>(d)), random);
  cell.w_h = gaussian(4 * h, h, gain / std::sqrt(static_cast<double>(h)), random);
  cell.bias = Tensor::zeros({4 * h});
  for (Index i = h; i < 2 * h; ++i) cell.bias.ref(i) = static_cast<float>(forget);
  return cell;
}

CellRun run_rnn(const RnnCell& cell, const Tensor& x) {
  const Index n = x.dim(0), h = cell.w_h.dim(0);
  CellRun run;
  run.hidden = Tensor::uninitialized({n, h});
  Numbers state(static_cast<std::size_t>(h), 0.0);
  for (Index t = 0; t < n; ++t) {
    Numbers next = before_gates(cell.w_x, cell.w_h, cell.bias, x, t, state);
    for (Index i = 0; i < h; ++i) {
      double& value = nth(next, i);
      value = std::tanh(value);
      run.hidden.ref(t, i) = static_cast<float>(value);
    }
    state = std::move(next);
  }
  return run;
}

CellRun run_lstm(const LstmCell& cell, const Tensor& x) {
  const Index n = x.dim(0), h = cell.w_h.dim(1);
  CellRun run;
  run.hidden = Tensor::uninitialized({n, h});
  run.cell = Tensor::uninitialized({n, h});
  run.gates = Tensor::uninitialized({n, 4 * h});
  Numbers hidden(static_cast<std::size_t>(h), 0.0), memory = hidden;
  for (Index t = 0; t < n; ++t) {
    const Numbers raw = before_gates(cell.w_x, cell.w_h, cell.bias, x, t, hidden);
    const auto at = [&](Index gate, Index i) { return nth(raw, gate * h + i); };
    for (Index i = 0; i < h; ++i) {
      const double in = sigmoid(at(0, i)), forget = sigmoid(at(1, i)), value = std::tanh(at(2, i)),
                   out = sigmoid(at(3, i));
      double& c = nth(memory, i);
      c = forget * c + in * value;
      nth(hidden, i) = out * std::tanh(c);
      run.gates.ref(t, i) = static_cast<float>(in);
      run.gates.ref(t, h + i) = static_cast<float>(forget);
      run.gates.ref(t, 2 * h + i) = static_cast<float>(value);
      run.gates.ref(t, 3 * h + i) = static_cast<float>(out);
      run.cell.ref(t, i) = static_cast<float>(c);
      run.hidden.ref(t, i) = static_cast<float>(nth(hidden, i));
    }
  }
  return run;
}

// Backwards from h_t: `at_hidden` is ∂h_t / ∂h_s, (h, h).
Tensor rnn_influence(const RnnCell& cell, const Tensor& x, bool only_last, std::stop_token stop) {
  const CellRun run = run_rnn(cell, x);
  const Eigen::MatrixXd w_x = matrix_of(cell.w_x), w_h = matrix_of(cell.w_h);
  const Eigen::MatrixXd through_tanh = 1 - matrix_of(run.hidden).array().square();
  return influence(x.dim(0), only_last, [&](Index t, Index row, Tensor& out) {
    Eigen::MatrixXd at_hidden = Eigen::MatrixXd::Identity(w_h.rows(), w_h.rows());
    for (Index s = t; s >= 0; --s) {
      check(stop);
      const Eigen::MatrixXd raw = at_hidden * through_tanh.row(s).asDiagonal();
      out.ref(row, s) = static_cast<float>((raw * w_x).norm());
      at_hidden.noalias() = raw * w_h;
    }
  });
}

Tensor lstm_influence(const LstmCell& cell, const Tensor& x, bool only_last, std::stop_token stop) {
  const CellRun run = run_lstm(cell, x);
  const Eigen::MatrixXd w_x = matrix_of(cell.w_x), w_h = matrix_of(cell.w_h);
  const Eigen::ArrayXXd gates = matrix_of(run.gates).array(), cells = matrix_of(run.cell).array(),
                        squashed = cells.tanh();
  const Index h = w_h.cols();
  return influence(x.dim(0), only_last, [&](Index t, Index row, Tensor& out) {
    Eigen::MatrixXd at_hidden = Eigen::MatrixXd::Identity(h, h), at_cell = Eigen::MatrixXd::Zero(h, h), raw(h, 4 * h);
    for (Index s = t; s >= 0; --s) {
      check(stop);
      const auto gate = [&](Index which) { return gates.row(s).segment(which * h, h); };
      const auto in = gate(0), forget = gate(1), value = gate(2), open = gate(3);
      const Eigen::ArrayXXd tanh_c = squashed.row(s);
      Eigen::ArrayXXd before = Eigen::ArrayXXd::Zero(1, h);
      if (s > 0) before = cells.row(s - 1);
      // By row of `at`, column j times factor(j).
      const auto scaled = [](const Eigen::MatrixXd& at, const Eigen::ArrayXXd& factor) -> Eigen::MatrixXd {
        return at * factor.matrix().row(0).asDiagonal();
      };
      at_cell += scaled(at_hidden, open * (1 - tanh_c.square()));
      raw << scaled(at_cell, value * in * (1 - in)), scaled(at_cell, before * forget * (1 - forget)),
          scaled(at_cell, in * (1 - value.square())), scaled(at_hidden, tanh_c * open * (1 - open));
      at_cell = scaled(at_cell, forget);  // what reaches the cell before
      out.ref(row, s) = static_cast<float>((raw * w_x).norm());
      at_hidden.noalias() = raw * w_h;
    }
  });
}

}  // namespace headscope
