#include "core/analysis/finding_words.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

namespace {
/// A label as a word of a sentence.
Worded quoted(std::string label) {
  constexpr std::string_view space = "␣";
  if (label.size() > space.size() && label.starts_with(space)) label.erase(0, space.size());
  return say_later("“{}”", label);
}
}  // namespace

Worded portion(double p) {
  if (!std::isfinite(p)) return std::string("–");
  if (p > 0 && p < 0.001) return to_say("below 0.001");
  return p >= 0.0995 || p == 0 ? fmt::format("{:.2f}", p) : fmt::format("{:.3f}", p);
}

Worded token_in_words(const LoadedModel& loaded, std::int32_t id) {
  return loaded.tokenizer ? quoted(loaded.tokenizer->token(id).label) : say_later("token {}", id);
}

Worded name_in_words(const LoadedModel& loaded, const Trace& trace, Index position) {
  // What stands there has the trace's own name: the vocabulary of a model of pictures is that of its classes.
  const Token& token = nth(trace.tokens, position);
  if (trace.picture) return token.label;
  return loaded.tokenizer ? quoted(token.label) : token_in_words(loaded, token.id);
}

Worded place_in_words(const LoadedModel& loaded, const Trace& trace, Index position) {
  return say_later("{} (position {})", name_in_words(loaded, trace, position), position);
}

Worded in_words(const LoadedModel& loaded, const AnswerChange& change) {
  const Worded answer = token_in_words(loaded, change.answer), was = portion(change.was), is = portion(change.is);
  const Worded out = was == is                ? say_later("{} stays at {}", answer, is)
                     : change.is < change.was ? say_later("{} falls from {} to {}", answer, was, is)
                                              : say_later("{} rises from {} to {}", answer, was, is);
  return out + (change.best.id == change.answer
                    ? Worded(to_say(", still the answer"))
                    : say_later(", and {} ({}) comes first", token_in_words(loaded, change.best.id),
                                portion(change.best.probability)));
}

Evidence strongest_cell(const AttentionMap& map, Index row) {
  Evidence best{row, 0, map.weight(row, 0)};
  for (Index key = 1; key < map.n_key(); ++key)
    if (const float w = map.weight(row, key); w > best.weight) best = {row, key, w};
  return best;
}

}  // namespace headscope
