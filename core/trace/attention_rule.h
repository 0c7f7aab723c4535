#pragma once
// Which keys a query may see, and what is added to its scores, as a pure function of positions. Because a rule can be
// replayed for any cell, a long map need not store n² numbers (see AttentionMap).
// Positions are absolute: query row r of a run with `offset` cached tokens has position offset + r.

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/tensor/tensor.h"

namespace headscope {

struct KeyRange {
  Index begin = 0, end = 0;  ///< [begin, end)
  Index size() const { return end - begin; }
};

/// What distance adds to one score, scaled as the score is, where contents and distances have vectors of their own (He
/// et al., DeBERTa: Decoding-enhanced BERT with Disentangled Attention, 2021).
struct DistanceTerms {
  double content_to_position = 0;  ///< scale · query_i · K_r[δ(i, j)]
  double position_to_content = 0;  ///< scale · key_j · Q_r[δ(i, j)]
  Index row = 0;                   ///< δ(i, j), of the table of distances
};

class AttentionRule {
 public:
  virtual ~AttentionRule() = default;
  /// The smallest range holding every key that `query` may see among keys [0, n_key). May be empty.
  virtual KeyRange keys(Index query, Index n_key) const = 0;
  /// True when every key inside keys() is visible and no bias is added, so apply() may be skipped.
  virtual bool plain() const { return true; }
  /// Adds the bias to, and writes -infinity into masked cells of, `scores` = the scores of keys
  /// [first_key, first_key + scores.size()) for `query`, a part of keys(query).
  virtual void apply(Index query, Index first_key, std::span<float> scores) const;
  /// What apply() multiplies the visible scores of this row by: their derivative by q·k · scale.
  virtual float factor(Index query) const;
  /// > 0: apply() begins by bending this row's scores s to cap · tanh(s ÷ cap).
  virtual float cap(Index query) const;
  /// The logit that stands in this row's softmax beside those of the keys: its share goes to no token, so that the
  /// weights sum to less than 1 (OpenAI, gpt-oss-120b & gpt-oss-20b Model Card, 2025). −infinity = none.
  virtual float sink(Index query) const;
  /// What apply() adds first, of a rule that knows queries and keys; nothing in all others.
  virtual std::optional<DistanceTerms> distance_terms(Index query, Index key) const;
  virtual std::string describe() const = 0;  ///< "causal", "sliding window 128"
};

/// Every query sees every key (encoders, cross-attention).
std::shared_ptr<const AttentionRule> full_rule();
/// A query sees itself and what came before (decoders).
std::shared_ptr<const AttentionRule> causal_rule();

/// True when `query` may not see `key`.
bool masked(const AttentionRule& rule, Index query, Index key, Index n_key);

}  // namespace headscope
