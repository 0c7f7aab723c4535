#pragma once
// What a recurrent encoder-decoder does between its products, as ops that record on the backend's tape: one step of a
// gated recurrent unit (Cho et al., Learning Phrase Representations using RNN Encoder–Decoder, 2014), and additive
// attention over the encoder's states (Bahdanau, Cho & Bengio, Neural Machine Translation by Jointly Learning to Align
// and Translate, 2015). A batch of B texts goes through them together; states of many steps lie step by step, row
// t · B + b. Thread rule: as Backend's; results do not depend on the number of threads.

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/backend.h"
#include "core/tensor/tensor.h"

namespace headscope {

/// z = σ(x_z + u_z), r = σ(x_r + u_r), n = tanh(x_n + r ⊙ u_n); h' = z ⊙ h + (1 − z) ⊙ n.
/// x (B, 3 h): what comes in, through its weights, z, r and n side by side; u (B, 3 h): the state through its own. The
/// reset gate is behind the product, so that the state goes through one matrix (as cuDNN has it); the paper's is before
/// it. state (B, h). Rows that are not `alive` (0) keep their state: their text is over. Empty: all are.
Tensor gru_step(Backend& backend, const Tensor& x, const Tensor& u, const Tensor& state,
                std::span<const std::uint8_t> alive = {});

/// e_j = w · tanh(query + key_j), α = softmax of e over a text's own states, Σ_j α_j value_j.
/// query (B, a), keys (S · B, a), w (a), values (S · B, h); text b has lengths[b] ≤ S states, at least one. Gives
/// (B, h); `weights`, where it is not null, α (B, S), 0 behind a text's end.
Tensor additive_context(Backend& backend, const Tensor& query, const Tensor& keys, const Tensor& w,
                        const Tensor& values, std::span<const Index> lengths, Tensor* weights = nullptr);

/// The rows of all, one below another; equally wide.
Tensor stack_rows(Backend& backend, const std::vector<Tensor>& parts);

}  // namespace headscope
