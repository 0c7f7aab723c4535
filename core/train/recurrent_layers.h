#pragma once
// A linear recurrence in the place of softmax attention in some layers of a model that learns (Katharopoulos et al.,
// Transformers are RNNs, 2020; with a decay, Sun et al., Retentive Network, 2023; the state space of Mamba-2 with a
// step that does not depend on the token, Dao & Gu 2024). Per head, of the queries, keys and values that softmax would
// get:
//   S_t = γ S_{t−1} + k_t v_tᵀ,   o_t = S_tᵀ q_t · scale,   γ_h = 1 − 2^(−1 − 4 h)
// (decays farther apart than RetNet's, so that the first head knows what stood just before: what Mamba has a short
// convolution for). Its state has d_head × d_value numbers, however long the text. All else of the model stays, so that
// what two models learn differs by this alone. The mechanism `gated gate=scalar` computes the same at inference.

#include <memory>
#include <set>

#include "core/model/config.h"
#include "core/tensor/backend.h"
#include "core/trace/tap.h"

namespace headscope {

/// γ of a head.
double retention_decay(int head);

/// Recorded on the backend's tape. Rows of the pass are texts of `length` tokens each. One thread at a time; `backend`
/// must outlive it. REQUIRES a decoder with as many key heads as heads.
std::shared_ptr<Tap> recurrent_layers(const ModelConfig& config, std::set<int> layers, int length, Backend& backend);

}  // namespace headscope
