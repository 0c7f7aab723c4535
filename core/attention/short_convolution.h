#pragma once
// The gated short convolution of LFM2 (Liquid AI, LFM2 Technical Report, 2025), as ops of a forward pass: every channel
// is gated, convolved over the last K tokens, and gated again,
//   y_t = C_t ∘ (Σ_{j<K} w_{K−1−j} ∘ B_{t−j} ∘ x_{t−j} + b)
// with B, C and x made of the token. y is linear in x: y_t = Σ_{s≤t} α_ts x_s + C_t b, channel by channel, with
//   α_ts = C_t w_{K−1−(t−s)} B_s   of the last K tokens, else 0
// which is what a map of such a layer shows, with signs, as the mean over neighbouring channels. Ops record on the
// backend's tape. Thread rule: as Backend's.

#include <span>

#include "core/tensor/backend.h"
#include "core/tensor/tensor.h"

namespace headscope {

struct ShortConvolution {
  Tensor b, c, x;                       ///< (n, channels), unit inner stride
  Tensor weight;                        ///< (channels, K), that of the latest token last
  Tensor bias;                          ///< (channels) or undefined
  std::span<const Index> lengths = {};  ///< of several texts, each beginning after zeros; empty = one
};

/// y (n, channels). `before` (K − 1, channels): B ∘ x of the tokens that came before, from a cache; undefined = zeros.
Tensor convolve_gated(Backend& backend, const ShortConvolution& in, const Tensor& before = {});

/// What y is beside Σ α x: C ∘ b, (n, channels); undefined without a bias.
Tensor convolution_offset(Backend& backend, const ShortConvolution& in);

/// The rows t ∈ [first, n) of α of one channel: (n − first, n) of the text. No tape. REQUIRES one text.
Tensor implied_attention(const ShortConvolution& in, Index channel, Index first = 0);
/// The mean of those of the channels [begin, end).
Tensor mean_implied(const ShortConvolution& in, Index begin, Index end, Index first);

/// α of all channels, (n, channel, n), recorded. REQUIRES one text.
Tensor implied_of_all(Backend& backend, const ShortConvolution& in);

}  // namespace headscope
