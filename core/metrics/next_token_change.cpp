#include "core/metrics/next_token_change.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/metrics/next_token.h"

namespace headscope {

namespace {
/// Row of the logits of `query`; −1 when it was not kept.
Index logit_row(const Trace& trace, int query) {
  if (!trace.logits.defined()) return -1;
  const auto tokens = static_cast<Index>(trace.tokens.size());
  const Index position = query < 0 ? answer_position(trace).value_or(-1) : query, rows = trace.logits.dim(0);
  if (position < 0 || position >= tokens) return -1;
  if (trace.model.objective == Objective::image_class) return position == 0 ? 0 : -1;
  if (rows == tokens) return position;
  return position == tokens - 1 ? rows - 1 : -1;
}

struct LogProbabilities {
  explicit LogProbabilities(const Tensor& logits) : row(logits), log_sum(log_sum_exp(logits)) {}
  double operator()(Index id) const { return static_cast<double>(row.at(id)) - log_sum; }
  Tensor row;
  double log_sum = 0;
};
}  // namespace

NextTokenChange next_token_change(const Trace& before, const Trace& after, int k, int query,
                                  std::optional<int> query_after) {
  NextTokenChange change;
  change.kl = std::numeric_limits<double>::quiet_NaN();
  const Index row_before = logit_row(before, query), row_after = logit_row(after, query_after.value_or(query));
  if (row_before < 0 || row_after < 0) return change;
  const Index vocab = before.logits.dim(1);
  if (after.logits.dim(1) != vocab)
    throw Error("next tokens", "two traces of one vocabulary, " + std::to_string(vocab) + " tokens",
                std::to_string(after.logits.dim(1)));
  const LogProbabilities p(before.logits.select(0, row_before)), q(after.logits.select(0, row_after));
  change.kl = 0;
  for (Index id = 0; id < vocab; ++id) change.kl += std::exp(p(id)) * (p(id) - q(id));
  change.kl = std::max(0.0, change.kl);

  const auto add = [&](const std::vector<NextToken>& tokens) {
    for (const NextToken& token : tokens) {
      const auto same = [&](const NextTokenChange::Token& known) { return known.id == token.id; };
      if (std::ranges::any_of(change.tokens, same)) continue;
      change.tokens.push_back({token.id, std::exp(p(token.id)), std::exp(q(token.id))});
    }
  };
  add(top_next(before, k, query));
  add(top_next(after, k, query_after.value_or(query)));
  std::ranges::stable_sort(change.tokens, std::ranges::greater{},
                           [](const NextTokenChange::Token& token) { return std::max(token.before, token.after); });
  return change;
}

double logit_difference(const Trace& trace, std::int32_t token, std::int32_t other, int query) {
  const Index row = logit_row(trace, query);
  if (row < 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(trace.logits.at(row, token)) - static_cast<double>(trace.logits.at(row, other));
}

}  // namespace headscope
