#pragma once
// The selective state space of Mamba (Gu & Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces,
// 2023): what is written (B), what is read (C) and how long a step lasts (Δ) follow from the token itself, so that a
// token can be kept or passed over. For every channel e of x with a diagonal A of negative numbers:
//   h_t = exp(Δ_t A) ⊙ h_{t−1} + Δ_t B_t x_{t,e},   y_{t,e} = C_t · h_t
// No kernel is shared any more, yet steps can be joined two by two, (a₂, b₂) ∘ (a₁, b₁) = (a₂ a₁, a₂ b₁ + b₂), which a
// parallel scan does in log n rounds. And y is linear in x: y_t = Σ_s α_ts x_s with the hidden attention matrix
//   α_ts = C_t · (exp(A Σ_{s<r≤t} Δ_r) ⊙ Δ_s B_s)   (Ali, Zimerman & Wolf, The Hidden Attention of Mamba Models, 2024).
// Thread rule: pure functions.

#include <stop_token>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

struct SelectiveScan {
  Tensor x;                   ///< (n, channels)
  Tensor b, c;                ///< (n, N)
  std::vector<double> delta;  ///< (n), > 0
  std::vector<double> a;      ///< (N), < 0
};

/// One token after another: (n, channels). `states`: filled with h_t, each (N, channels); may be null.
Tensor scan_recurrent(const SelectiveScan& in, std::vector<Tensor>* states = nullptr);
/// The same by joining steps, ⌈log₂ n⌉ rounds (Hillis & Steele, 1986). `rounds` (may be null) says how many it took.
Tensor scan_parallel(const SelectiveScan& in, int* rounds = nullptr);
/// (n, n), zero above the diagonal; signed. Throws Cancelled when `stop` asks for it.
Tensor hidden_attention(const SelectiveScan& in, const std::stop_token& stop = {});

/// ln(1 + eˣ), which keeps Δ positive.
double softplus(double x);

}  // namespace headscope
