#pragma once
// What a model predicts, from the logits of a trace: loss per token, perplexity, most probable tokens over the full
// vocabulary. A decoder's row says what comes next, an encoder's what stands in its place, the one row of a
// picture which class it is of (Objective).

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/trace/trace.h"

namespace headscope {

/// ln Σ exp of one row of logits (vocab).
double log_sum_exp(const Tensor& row);
/// −ln softmax(logits)[next], of one row of logits (vocab). REQUIRES 0 ≤ next < vocab.
double next_token_loss(const Tensor& logits, std::int32_t next);
/// A token that a row of the logits is held against.
struct Target {
  Index row = 0;
  std::int32_t token = 0;
};
/// Of a decoder row i and token i + 1, i = 0…n−2; of an encoder the masked positions whose token is known. Throws Error
/// on a token outside the vocabulary.
std::vector<Target> targets(const Trace& trace);
/// Where each of these targets stands in the text, as the x of a chart of losses: row + 1, of an encoder the row.
std::vector<double> target_positions(const Trace& trace);
/// Where the answer is read: after the last token, at the first masked one, or at CLS, the first of a picture. Empty
/// where an encoder is asked nothing.
std::optional<Index> answer_position(const Trace& trace);
/// The row of a map that is looked at while none is chosen: its last, of an encoder that of the answer where there is
/// one.
Index usual_query(const Trace& trace, const AttentionMap& map);
/// −ln p(target | what the model saw) in nats, target by target. Empty when the trace has not all logits.
std::vector<double> token_losses(const Trace& trace);
/// Mean of token_losses; NaN without losses. Perplexity is its exponential.
double mean_loss(const Trace& trace);
/// The same of losses that were made before.
double mean_loss(std::span<const double> token_losses);

struct NextToken {
  std::int32_t id = 0;
  double probability = 0;
  float logit = 0;
};
/// The k most probable tokens that row `query` tells (−1 = that of answer_position(); none without), probabilities over
/// the full vocabulary, ties by id.
std::vector<NextToken> top_next(const Trace& trace, int k, int query = -1);
/// The same of one row of logits (vocab).
std::vector<NextToken> top_next(const Tensor& row, int k);
/// The first of these. Throws Error where the trace has no logits, and where nothing is asked for.
NextToken most_probable(const Trace& trace, int query = -1);

/// What is predicted, for sentences of which a part is said of decoders or of encoders.
struct PredictionWords {
  const char* token;  ///< "next token"
  const char* where;  ///< of one row of logits: "after the last token"
  const char* loss;   ///< "mean of −ln p(token | what came before)"
};
const PredictionWords& prediction_words(Objective objective);

/// What an encoder says of one masked position.
struct MaskedAnswer {
  Index position = 0;
  std::int32_t original = -1;   ///< what stood there; −1 = nobody knows
  NextToken best;               ///< most probable
  double original_probability;  ///< NaN where the original is unknown
  bool right() const { return best.id == original; }
};
/// Of every masked position, in order; empty for decoders and without all logits.
std::vector<MaskedAnswer> masked_answers(const Trace& trace);

}  // namespace headscope
