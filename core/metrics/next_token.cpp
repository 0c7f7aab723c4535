#include "core/metrics/next_token.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/base/words.h"
#include "core/tensor/row_ops.h"

namespace headscope {

double log_sum_exp(const Tensor& row) {
  const Tensor values = row.stride(0) == 1 ? row : row.copy();
  return row_ops::log_sum_exp(values.data(), values.dim(0));
}

double next_token_loss(const Tensor& logits, std::int32_t next) {
  return log_sum_exp(logits) - static_cast<double>(logits.at(next));
}

std::vector<Target> targets(const Trace& trace) {
  std::vector<Target> out;
  const auto add = [&](std::size_t row, std::size_t at, std::int32_t token) {
    const Index vocab = trace.logits.defined() ? trace.logits.dim(1) : trace.model.dims.vocab;
    if (token < 0 || token >= vocab)
      throw Error("token " + std::to_string(at), "an id below " + std::to_string(vocab) + ", the width of the logits",
                  std::to_string(token));
    out.push_back({static_cast<Index>(row), token});
  };
  if (trace.model.objective == Objective::next_token)
    for (std::size_t i = 0; i + 1 < trace.tokens.size(); ++i) add(i, i + 1, trace.tokens[i + 1].id);
  else if (trace.model.objective == Objective::masked_token)
    for (std::size_t i = 0; i < trace.tokens.size(); ++i)
      if (trace.tokens[i].masked && trace.tokens[i].original >= 0) add(i, i, trace.tokens[i].original);
  return out;
}

std::vector<double> target_positions(const Trace& trace) {
  const double ahead = trace.model.objective == Objective::next_token ? 1 : 0;
  std::vector<double> out;
  for (const Target& target : targets(trace)) out.push_back(static_cast<double>(target.row) + ahead);
  return out;
}

std::optional<Index> answer_position(const Trace& trace) {
  if (trace.model.objective == Objective::next_token) return static_cast<Index>(trace.tokens.size()) - 1;
  if (trace.model.objective == Objective::image_class) return 0;
  const auto masked = std::ranges::find(trace.tokens, true, &Token::masked);
  if (masked == trace.tokens.end()) return std::nullopt;
  return masked - trace.tokens.begin();
}

Index usual_query(const Trace& trace, const AttentionMap& map) {
  const Index last = map.n_query() - 1;
  return trace.model.objective == Objective::next_token ? last : std::min(answer_position(trace).value_or(last), last);
}

std::vector<double> token_losses(const Trace& trace) {
  std::vector<double> losses;
  if (!trace.logits.defined() || trace.logits.dim(0) != static_cast<Index>(trace.tokens.size())) return losses;
  for (const Target& target : targets(trace))
    losses.push_back(next_token_loss(trace.logits.select(0, target.row), target.token));
  return losses;
}

double mean_loss(const Trace& trace) {
  return mean_loss(token_losses(trace));
}

double mean_loss(std::span<const double> losses) {
  if (losses.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

std::vector<NextToken> top_next(const Trace& trace, int k, int query) {
  if (!trace.logits.defined() || k <= 0) return {};
  const Index rows = trace.logits.dim(0);
  const auto tokens = static_cast<Index>(trace.tokens.size());
  if (trace.model.objective == Objective::image_class) {  // one row for all of the picture
    if (query > 0)
      throw Error("class scores: position", "the position of CLS, 0, where they are read", std::to_string(query));
    query = -1;
  } else if (query == -1 && rows == tokens) {
    const std::optional<Index> answer = answer_position(trace);
    if (!answer) return {};
    query = static_cast<int>(*answer);
  }
  // Row of a position: all of them are there, or the last alone.
  const Index row = query < 0 || (rows == 1 && query == tokens - 1) ? rows - 1 : query;
  if (query < -1 || row >= rows || (rows == 1 && tokens > 1 && query >= 0 && query != tokens - 1))
    throw Error("next tokens: position",
                rows == 1 && tokens > 1
                    ? "the last position, " + std::to_string(tokens - 1) + ", whose logits alone were kept"
                    : "a position below " + std::to_string(rows),
                std::to_string(query));
  return top_next(trace.logits.select(0, row), k);
}

std::vector<NextToken> top_next(const Tensor& logits, int k) {
  const Index vocab = logits.dim(0);
  const double total = log_sum_exp(logits);
  std::vector<std::int32_t> order(static_cast<std::size_t>(vocab));
  std::iota(order.begin(), order.end(), 0);
  const auto count = static_cast<std::ptrdiff_t>(std::min<Index>(k, vocab));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int32_t a, std::int32_t b) {
    const float left = logits.at(a), right = logits.at(b);
    return left != right ? left > right : a < b;
  });
  std::vector<NextToken> top;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const std::int32_t id = nth(order, i);
    top.push_back({id, std::exp(static_cast<double>(logits.at(id)) - total), logits.at(id)});
  }
  return top;
}

NextToken most_probable(const Trace& trace, int query) {
  need_logits(trace.model);
  const std::vector<NextToken> top = top_next(trace, 1, query);
  if (top.empty() && trace.logits.defined())
    throw Error(trace.model.name, "a masked token that is asked for", "none",
                "mask one, or write the token for masked ones in the text");
  if (top.empty()) throw Error(trace.model.name, "a trace with logits", "one without");
  return top.front();
}

const PredictionWords& prediction_words(Objective objective) {
  static constexpr PredictionWords next{to_say("next token"), to_say("after the last token"),
                                        to_say("mean of −ln p(token | what came before)")},
      masked{to_say("masked token"), to_say("at the first masked token"),
             to_say("mean of −ln p(masked token | what the model saw)")};
  static constexpr PredictionWords classes{to_say("class"), to_say("of the picture"), to_say("−ln p(class | picture)")};
  if (objective == Objective::image_class) return classes;
  return objective == Objective::next_token ? next : masked;
}

std::vector<MaskedAnswer> masked_answers(const Trace& trace) {
  std::vector<MaskedAnswer> out;
  const auto tokens = static_cast<Index>(trace.tokens.size());
  if (trace.model.objective != Objective::masked_token || !trace.logits.defined() || trace.logits.dim(0) != tokens)
    return out;
  for (Index at = 0; at < tokens; ++at) {
    const Token& token = nth(trace.tokens, at);
    if (!token.masked) continue;
    const bool known = token.original >= 0 && token.original < trace.logits.dim(1);
    const double probability = known ? std::exp(-next_token_loss(trace.logits.select(0, at), token.original)) : nan;
    out.push_back({at, known ? token.original : -1, most_probable(trace, static_cast<int>(at)), probability});
  }
  return out;
}

}  // namespace headscope
