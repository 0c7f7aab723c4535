#pragma once
// What attention took the place of: cells that read a text one token after another and carry a state of fixed size.
// RNN (Elman, Finding Structure in Time, 1990) and LSTM (Hochreiter & Schmidhuber, Long Short-Term Memory, 1997, with
// the forget gate of Gers et al., 2000); and how much of an early token is left in a late state: the exact norm of
// ∂h_t / ∂x_s, which in a chain of n steps is a product of n matrices (Bengio et al., Learning Long-Term Dependencies
// with Gradient Descent is Difficult, 1994), where attention needs one step at any distance.
// Thread rule: pure functions.

#include <cstdint>
#include <stop_token>

#include "core/tensor/tensor.h"

namespace headscope {

/// h_t = tanh(W_x x_t + W_h h_{t−1} + b), h before the first token is 0.
struct RnnCell {
  Tensor w_x;   ///< (h, d)
  Tensor w_h;   ///< (h, h)
  Tensor bias;  ///< (h)
};
/// Gates i, f, g, o one below another: i, f, o = σ(…), g = tanh(…); c_t = f ⊙ c_{t−1} + i ⊙ g; h_t = o ⊙ tanh(c_t).
struct LstmCell {
  Tensor w_x;   ///< (4 h, d)
  Tensor w_h;   ///< (4 h, h)
  Tensor bias;  ///< (4 h)
};

/// Entries of N(0, 1/d) into, N(0, gain²/h) between states; biases 0, of forget gates `forget`. The same seed gives the
/// same cell.
RnnCell random_rnn(Index d, Index h, double gain, std::uint64_t seed);
LstmCell random_lstm(Index d, Index h, double gain, double forget, std::uint64_t seed);

struct CellRun {
  Tensor hidden;  ///< (n, h)
  Tensor cell;    ///< (n, h), of an LSTM; else undefined
  Tensor gates;   ///< (n, 4 h) i, f, g, o after their functions, of an LSTM; else undefined
};
/// `x` (n, d).
CellRun run_rnn(const RnnCell& cell, const Tensor& x);
CellRun run_lstm(const LstmCell& cell, const Tensor& x);

/// (n, n): Frobenius norm of ∂h_t / ∂x_s in row t, column s ≤ t; 0 after it. Takes n² products of h × h matrices;
/// throws Cancelled. `only_last`: the last row alone, (1, n).
Tensor rnn_influence(const RnnCell& cell, const Tensor& x, bool only_last = false, std::stop_token stop = {});
Tensor lstm_influence(const LstmCell& cell, const Tensor& x, bool only_last = false, std::stop_token stop = {});

}  // namespace headscope
