#pragma once
// A language whose truth is known: texts drawn from a Grammar, each with its exact probability and with the links that
// attention heads may find (which verb belongs to which subject, whom a pronoun means …). The same derivation that
// draws a text also recovers it: derivations() finds every way in which the grammar can produce a given text, so the
// probability of a text never rests on the draw that made it. Σ −log p over a set of texts ÷ its tokens is therefore
// the loss below which no model can stay on average.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"
#include "core/train/grammar.h"

namespace headscope {

/// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin = 0, end = 0;
  bool operator==(const TextSpan&) const = default;
};

enum class LinkKind {
  subject,     ///< from a verb to the subject it agrees with
  antecedent,  ///< from a pronoun to every earlier mention of whom it means, pronouns included
  determiner,  ///< from a noun to its determiner
  occurrence,  ///< from a name or noun to every earlier time the same one was written
  /// From a word of several that are said again (a line of a song) to the word that followed it every earlier time:
  /// what an induction head looks for.
  continuation,
};

/// From a later word to an earlier one.
struct TruthLink {
  LinkKind kind = LinkKind::subject;
  TextSpan from, to;
  bool operator==(const TruthLink&) const = default;
};

struct Story {
  std::string text;
  double log_probability = 0;    ///< nats; of this derivation
  std::vector<TruthLink> links;  ///< in the order of `from`
};

/// Immutable; any thread.
class Language {
 public:
  /// `grammar` must outlive the language. Throws Error when `start` is no rule or takes parameters.
  explicit Language(const Grammar& grammar, std::string_view start = "story");

  Story sample(Random& random) const;

  /// Calls `found` for every derivation of exactly `text`. Throws Error when a text has more than `limit` open ends,
  /// which no grammar of reasonable ambiguity reaches.
  void derivations(std::string_view text, const std::function<void(const Story&)>& found,
                   std::size_t limit = 1'000'000) const;
  /// log p(text), summed over its derivations; −∞ when the grammar cannot produce it.
  double log_probability(std::string_view text) const;
  /// Calls `found` for every derivation of every text: for small grammars. Throws Error past `limit` of them.
  void all_derivations(const std::function<void(const Story&)>& found, std::size_t limit = 1'000'000) const;

 private:
  const Grammar& grammar_;
  int start_ = 0;
};

}  // namespace headscope
