#pragma once
// What a head would do for any pair of tokens, read off its weights alone (Elhage et al., A Mathematical Framework for
// Transformer Circuits, 2021). With e_t = ln1(W_E[t]), the embedding of a token alone in the residual stream (no
// position, no other layer), as the head's block would normalise it:
//   QK circuit   score(q, k) = s · (e_q W_Q + b_Q) R (e_k W_K + b_K)ᵀ     how much token q wants to look at token k;
//                R is the rotation between them with rotary positions (`distance` tokens apart), else the identity;
//                s as in the forward pass (1/√d_head, and 1/(layer + 1) where the model has it)
//   OV circuit   effect(s → t) = e_s W_V W_O · u_t                        what looking at s does to the logit of t;
//                u_t = column t of the unembedding, with the final norm's gain folded in (and its mean taken away for a
//                LayerNorm), less the mean over the vocabulary, which no softmax sees. The final norm's scale is that
//                of the run and left out: effects compare with one another, not with logits
//   copying      Σ Re λ / Σ |λ| over the eigenvalues λ of the full OV circuit (vocab × vocab, of rank d_head: taken
//   from
//                the d_head × d_head matrix W_O U E W_V): +1 = what it looks at becomes more likely, −1 = less
//   matching     the same of the QK circuit: +1 = looks at tokens like itself; NaN where queries and keys, or latents
//                that they are made of, have a norm, since they are then no product of the embedding with a matrix
// Models with norms behind attention have no circuits of single heads: an Error says so.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/trace/trace.h"

namespace headscope {

struct CircuitOf {
  HeadId head;
  int distance = 0;  ///< from key back to query, tokens; only rotary positions care
};

struct TokenPair {
  std::int32_t from = 0, to = 0;  ///< OV: looked at → made more likely. QK: query → key
  float value = 0;
};

/// For a few tokens (those of a prompt).
struct TokenCircuits {
  std::vector<std::int32_t> tokens;  ///< each once, in the order of their first appearance
  Tensor qk;                         ///< (query token, key token)
  Tensor ov;                         ///< (source token, output token)
  /// The tokens of the whole vocabulary that looking at each one raises most, strongest first: (token, kept).
  std::vector<TokenPair> raises;
  int kept = 0;
};
/// Throws Error on a head, token or distance that is not there.
TokenCircuits token_circuits(const Model& model, Backend& backend, const CircuitOf& of,
                             std::span<const std::int32_t> tokens, int keep = 5);

/// For the whole vocabulary: vocab² pairs, of which the strongest are kept. Large vocabularies take seconds to minutes.
struct FullCircuits {
  std::vector<TokenPair> qk, ov;  ///< strongest first, ties by ids
  double copies_first = 0;        ///< share of tokens whose own logit is the one that looking at them raises most
  double copies_ten = 0;          ///< … or among the ten
  double matches_first = 0;       ///< share of tokens that as queries want to look at themselves most
};
/// Throws as above, and Cancelled.
FullCircuits full_circuits(const Model& model, const Ctx& ctx, const CircuitOf& of, int keep = 50);

struct CopyingScore {
  double copying = 0, matching = 0;
};
CopyingScore copying_score(const Model& model, Backend& backend, HeadId head);

/// What the circuits of this model can say less of than of others, in a sentence or two; empty for most.
std::string circuit_note(const ModelConfig& config);

}  // namespace headscope
