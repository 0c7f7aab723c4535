#pragma once
// What a model predicts, from the logits of a trace: loss per token, perplexity, top next tokens over the full
// vocabulary.

#include <cstdint>
#include <span>
#include <vector>

#include "core/trace/trace.h"

namespace headscope {

/// −ln softmax(logits)[next], of one row of logits (vocab). REQUIRES 0 ≤ next < vocab.
double next_token_loss(const Tensor& logits, std::int32_t next);
/// −ln p(token[i+1] | tokens up to i) in nats, i = 0…n−2. Empty when the trace has not all logits or has one token.
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
/// The k most probable tokens after position `query` (−1 = last), probabilities over the full vocabulary, ties by id.
std::vector<NextToken> top_next(const Trace& trace, int k, int query = -1);

}  // namespace headscope
