#pragma once
// How sentences about a run name tokens, write probabilities and say what an absence did to the answer: one way for all
// findings.

#include "core/base/words.h"
#include "core/metrics/head_class.h"
#include "core/metrics/next_token.h"
#include "core/run/run_request.h"

namespace headscope {

/// Nats of the answer: below, an absence is said to change nothing.
inline constexpr double little_effect = 0.05;

/// 0.94, 0.012, below 0.001; – for NaN.
Worded portion(double p);
/// A token as a word of a sentence, “Anna”; "token 7" where nobody knows its letters.
Worded token_in_words(const LoadedModel& loaded, std::int32_t id);
/// “Anna”; a patch by its own name.
Worded name_in_words(const LoadedModel& loaded, const Trace& trace, Index position);
/// “Anna” (position 0)
Worded place_in_words(const LoadedModel& loaded, const Trace& trace, Index position);

/// The answer before and after something was taken away.
struct AnswerChange {
  std::int32_t answer = 0;  ///< before
  double was = 0, is = 0;   ///< its probability
  NextToken best;           ///< the most probable one after
};
/// “pies” falls from 0.81 to 0.12, and “milk” (0.55) comes first
Worded in_words(const LoadedModel& loaded, const AnswerChange& change);

/// What the row of a map looks at most.
Evidence strongest_cell(const AttentionMap& map, Index row);

}  // namespace headscope
