#pragma once
// The selective state space of Mamba (Gu & Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces,
// 2023): what is written (B), what is read (C) and how long a step lasts (Δ) follow from the token itself, so that a
// token can be kept or passed over. For every channel e of x with a diagonal A of negative numbers:
//   h_t = Ā_t ⊙ h_{t−1} + B̄_t x_{t,e},   y_{t,e} = C_t · h_t
//   Ā = exp(Δ A),   B̄ = (Δ A)⁻¹ (exp(Δ A) − 1) · Δ B: zero-order hold, eq. 4; B̄ = Δ B (Euler's step) is its first
//   order, which the published code computes. Δ_t has a number for every channel.
// No kernel is shared any more, yet steps can be joined two by two, (a₂, b₂) ∘ (a₁, b₁) = (a₂ a₁, a₂ b₁ + b₂), which a
// parallel scan does in log n rounds. And y is linear in x: y_t = Σ_s α_ts x_s with the hidden attention matrix
//   α_ts = C_t · (exp(A Σ_{s<r≤t} Δ_r) ⊙ B̄_s), one for every channel
//   (Ali, Zimerman & Wolf, The Hidden Attention of Mamba Models, 2024).
// Thread rule: pure functions.

#include <stop_token>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

struct SelectiveScan {
  enum class Hold { zero_order, euler };
  Tensor x;                   ///< (n, channels)
  Tensor b, c;                ///< (n, N)
  std::vector<double> delta;  ///< (n, channels) row-major, > 0
  std::vector<double> a;      ///< (N), < 0
  Hold hold = Hold::zero_order;
};

/// One token after another: (n, channels). `states`: filled with h_t, each (N, channels); may be null.
Tensor scan_recurrent(const SelectiveScan& in, std::vector<Tensor>* states = nullptr);
/// The same by joining steps, ⌈log₂ n⌉ rounds (Hillis & Steele, 1986). `rounds` (may be null) says how many it took.
Tensor scan_parallel(const SelectiveScan& in, int* rounds = nullptr);
/// Of one channel: (n, n), zero above the diagonal; signed. Throws Cancelled when `stop` asks for it.
Tensor hidden_attention(const SelectiveScan& in, Index channel, const std::stop_token& stop = {});

/// ln(1 + eˣ), which keeps Δ positive.
double softplus(double x);

}  // namespace headscope
