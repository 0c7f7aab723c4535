#pragma once
// Cross-entropy token by token: what one causal pass is trained and judged on. At position i the target is token i + 1:
//   loss_i = −ln p(token i+1 | tokens 0 … i)    mean loss L = Σ loss_i / (n − 1)    perplexity e^L
// perplexity: among how many equally likely tokens the model might as well be choosing. One pass over n tokens gives
// all n predictions, because position i sees nothing after i: that is checked by running beginnings of the text alone.
// Baselines, in nats: ln V for a model that knows nothing, and the entropy of this text's own token counts for one that
// knows how often each token occurs in it, but not where.

#include <cstdint>
#include <vector>

#include "core/run/run_request.h"

namespace headscope {

struct TokenLoss {
  Index position = 0;  ///< the one that predicts; its target is the token after it, or, masked, its own
  std::int32_t target = 0;
  double loss = 0;         ///< nats
  double probability = 0;  ///< e^−loss
  Index rank = 0;          ///< of the target, 1 = the most probable; ties by id
  std::int32_t best = 0;   ///< the most probable token
  double best_probability = 0;
  double running_mean = 0;  ///< of the losses up to here; its exponential is the running perplexity
  double unigram = 0;       ///< −ln (how often the target occurs among the targets ÷ their number)
};

struct LossReport {
  std::vector<TokenLoss> tokens;  ///< n − 1, or as many as are masked
  double mean = 0;                ///< nats per token
  double uniform = 0;             ///< ln V
  double unigram = 0;             ///< mean of TokenLoss::unigram
};
/// `trace` must have the logits of all positions. Throws Error without them, and on a text of one token.
LossReport read_token_losses(const Trace& trace);

/// Whether the pass looks ahead: beginnings of the text are run alone, and their last logits compared with the row of
/// the whole text's pass.
struct PrefixCheck {
  struct Prefix {
    Index length = 0;
    double difference = 0;  ///< largest |logit alone − logit in the whole pass|
    double loss = 0;        ///< of the token that follows, from the beginning alone, nats
  };
  std::vector<Prefix> prefixes;
  double largest = 0;    ///< of all the differences
  double magnitude = 0;  ///< largest |logit| of the rows compared: rounding is some 10⁻⁶ of it
};
/// Of `most` beginnings spread evenly, the shortest that has every position that edits name, and the longest, among
/// them. `trace` is that of `request`, with all logits. Throws as run(), and Error on a text of one token, and where no
/// beginning has those positions.
PrefixCheck check_prefixes(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx, const Trace& trace,
                           int most = 12);

}  // namespace headscope
