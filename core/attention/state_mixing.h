#pragma once
// What a layer of Mamba (Gu & Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, 2023) and of
// Mamba-2 (Dao & Gu, Transformers are SSMs, 2024) does between its projections, as ops of a forward pass: a short
// causal convolution of every channel, then a state that each token changes by numbers made of that token. Both kinds
// are one op: a *lane* is what has a step Δ of its own. In Mamba that is a channel (width 1) whose N states decay each
// at its own pace, in Mamba-2 a head (width P) with one pace for all of its states.
//   h_t = exp(Δ_t a) h_{t−1} + Δ_t B_t x_t   (N, P),   y_t = C_t h_t + d x_t
// (B by Euler's step, as the published code has it.) y is linear in x: y_t = Σ_{s≤t} α_ts x_s + d x_t with
//   α_ts = C_t · (exp(a Σ_{s<r≤t} Δ_r) ⊙ Δ_s B_s)
// (Ali, Zimerman & Wolf, The Hidden Attention of Mamba Models, 2024), which is what a map of such a layer shows.
// Ops record on the backend's tape. Thread rule: as Backend's.

#include <span>
#include <stop_token>
#include <vector>

#include "core/tensor/backend.h"
#include "core/tensor/tensor.h"

namespace headscope {

/// y_t,c = bias_c + Σ_j weight_c,j x_{t−K+1+j},c. x (n, channels), weight (channels, K), bias (channels) or undefined.
/// `before` (K − 1, channels): the rows that came before, from a cache; undefined = zeros. `lengths`: of several texts,
/// each beginning after zeros; empty = one.
Tensor causal_convolution(Backend& backend, const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const Tensor& before = {}, std::span<const Index> lengths = {});

/// ln(1 + e^z) of z = x + bias, above 20 z itself. x (n, channels), bias (channels) or undefined.
Tensor softplus(Backend& backend, const Tensor& x, const Tensor& bias = {});

/// −e^x, element by element: `a` from the logarithm that is stored and learned.
Tensor decay_rates(Backend& backend, const Tensor& x);

struct StateMixing {
  Tensor x;                             ///< (n, lanes, P); of x, delta, b and c each row lies without gaps
  Tensor delta;                         ///< (n, lanes), > 0
  Tensor a;                             ///< (lanes, N), or (lanes, 1) where all states of a lane decay alike; < 0
  Tensor b, c;                          ///< (n, groups, N): lane l reads group l ÷ (lanes ÷ groups)
  Tensor d;                             ///< (lanes), what passes by the state; undefined = 0
  std::span<const Index> lengths = {};  ///< of several texts, each beginning with an empty state; empty = one
};

/// y (n, lanes, P), a token after another; lanes are shared among threads. `state` (lanes, N, P), contiguous: h before
/// the first token on entry (undefined = zeros), h behind the last one, in fresh storage, after it; may be null. Not
/// with a tape, and not with several texts.
Tensor mix_states(Backend& backend, const StateMixing& in, Tensor* state = nullptr, const std::stop_token& stop = {});

/// The rows t ∈ [first, n) of α of one lane: (n − first, n) of in.x's text, 0 above the diagonal, signed; d is no part
/// of it. Only delta, a, b and c are read. No tape. REQUIRES one text.
Tensor implied_attention(const StateMixing& in, Index lane, Index first = 0, const std::stop_token& stop = {});

/// The mean of those of the lanes [begin, end), (n − first, n); rows have the same bits whatever `first` and how many
/// follow. Products of matrices do most of it, so that a thousand lanes take far less than one by one; what has decayed
/// to less than exp(−80) may be 0. `out`: where it is written, without gaps; undefined = in fresh storage.
Tensor mean_implied(const StateMixing& in, Index begin, Index end, Index first = 0, const std::stop_token& stop = {},
                    const Tensor& out = {});
/// Writes those of some of `heads`, lanes ÷ heads neighbouring lanes each, from `head` on, to out (…, n − first, n),
/// without gaps, where all states of a lane decay alike: far fewer products than head by head. Rows are shared among
/// the pool's threads; null = this one alone.
void means_of_alike(ThreadPool* pool, const StateMixing& in, Index heads, Index head, Index first,
                    const std::stop_token& stop, const Tensor& out);

}  // namespace headscope
