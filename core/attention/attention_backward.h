#pragma once
// The way back through softmax attention. Private to core/attention.

#include <vector>

#include "core/tensor/backend.h"
#include "core/trace/tap.h"

namespace headscope {

/// One text's attention in one layer, as it was computed.
struct AttentionSteps {
  Tensor q, k, v;                                      ///< as AttentionInput's, of this text
  Tensor pattern;                                      ///< (head, query, key)
  Tensor scores;                                       ///< (head, query, key), only where a tap saw them
  bool edited_scores = false, edited_pattern = false;  ///< a tap put others in their place: no gradient flows past
  float entropy_price = 0;  ///< added to dP: price · d(entropy of the row without key 0) / dP
  Tensor sinks;             ///< (head) or undefined
  Index offset = 0;         ///< position of query 0
};

/// Records z of all texts (rows begin[t] … begin[t + 1] are text t's) on the tape, where anything of it is active.
///   dsink = −Σ rows (1 − Σ P) · rowsum(P ∘ dP);
///   of distances (core/attention/positions/disentangled.h) what their vectors say to dQ and dK, but not to themselves;
///   dV = Pᵀ dZ,  dP = dZ Vᵀ,  dS = P ∘ (dP − rowsum(P ∘ dP)),  dQ = scale · dS K,  dK = scale · dSᵀ Q;
/// heads that share keys and values add up. The gradient of a pattern that is watched (or of replaced scores) is kept.
void record_attention(Tape& tape, Backend& backend, const Tensor& z, std::vector<Index> begin,
                      std::vector<AttentionSteps> steps, std::vector<HeadRule> rules);

}  // namespace headscope
