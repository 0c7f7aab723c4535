#pragma once
// The gated delta rule (Yang, Kautz & Hatamizadeh, Gated Delta Networks: Improving Mamba2 with Delta Rule, 2025), as an
// op of a forward pass. A head keeps a state S (K, V), from keys to values. A token lets it decay, looks up what stands
// at its key, and writes the part β of what is missing to its value there:
//   P = e^(Δ_t a) S_{t−1},   S_t = P + k_t (β_t (v_t − Pᵀ k_t))ᵀ,   o_t = S_tᵀ q_t
// that is S_tᵀ = e^(Δ_t a) S_{t−1}ᵀ (I − β_t k_t k_tᵀ) + β_t v_t k_tᵀ. o is linear in v: o_t = Σ_{s≤t} α_ts v_s with
//   α_ts = β_s k_s · w_ts,   w_tt = q_t,   w_t,s−1 = e^(Δ_s a) (w_ts − α_ts k_s)
// which is what a map of such a layer shows, with signs. Queries and keys come as they meet: of unit length
// (unit_rows), queries scaled. Ops record on the backend's tape. Thread rule: as Backend's.

#include <span>
#include <stop_token>

#include "core/tensor/backend.h"
#include "core/tensor/tensor.h"

namespace headscope {

struct GatedDelta {
  Tensor q, k;                          ///< (n, groups, K): head h reads group h ÷ (heads ÷ groups)
  Tensor v;                             ///< (n, heads, V); of all five that have rows each lies without gaps
  Tensor delta;                         ///< (n, heads), > 0
  Tensor a;                             ///< (heads), < 0
  Tensor beta;                          ///< (n, heads): 0…1, or 0…2, where what stands at a key may change its sign
  std::span<const Index> lengths = {};  ///< of several texts, each beginning with an empty state; empty = one
};

/// o (n, heads, V), a token after another; heads are shared among threads. `state` (heads, K, V), contiguous: S before
/// the first token on entry (undefined = zeros), S behind the last one, in fresh storage, after it; may be null. Not
/// with a tape, and not with several texts. Throws Cancelled.
Tensor mix_delta(Backend& backend, const GatedDelta& in, Tensor* state = nullptr, const std::stop_token& stop = {});

/// The rows t ∈ [first, n) of α of one head: (n − first, n) of the text, 0 above the diagonal, signed. v is not read
/// but for its shape. No tape. REQUIRES one text. Throws Cancelled.
Tensor implied_attention(const GatedDelta& in, Index head, Index first = 0, const std::stop_token& stop = {});

/// factor · σ(x) of x (n, channels).
Tensor sigmoids(Backend& backend, const Tensor& x, float factor = 1);

/// x ÷ √(Σ x² + ε) · factor of every vector of the last axis.
Tensor unit_rows(Backend& backend, const Tensor& x, double epsilon, float factor = 1);

}  // namespace headscope
