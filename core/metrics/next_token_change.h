#pragma once
// What an edit does to the prediction: next tokens before and after, and how far the two distributions lie apart.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/trace/trace.h"

namespace headscope {

struct NextTokenChange {
  struct Token {
    std::int32_t id = 0;
    double before = 0, after = 0;  ///< probabilities over the full vocabulary
  };
  std::vector<Token> tokens;  ///< the k most probable before and those after, by the larger of the two
  double kl = 0;              ///< KL(before ‖ after) in nats, over the full vocabulary
};

/// Of row `query` (−1 = that of answer_position()), in `after` its own `query_after` when the texts differ. Empty, with
/// kl NaN, when either trace has no logits there, or is asked nothing. Throws Error when the vocabularies differ.
NextTokenChange next_token_change(const Trace& before, const Trace& after, int k, int query = -1,
                                  std::optional<int> query_after = {});

/// logit(token) − logit(other) of row `query` (−1 = that of answer_position()); NaN when the trace has no logits there,
/// or is asked nothing. REQUIRES both in the vocabulary.
double logit_difference(const Trace& trace, std::int32_t token, std::int32_t other, int query = -1);

}  // namespace headscope
