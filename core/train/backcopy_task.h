#pragma once
// The bigram-backcopy language (Guo, Pai, Bai, Jiao, Jordan & Mei, Active-Dormant Attention Heads: Mechanistically
// Demystifying Extreme-Token Phenomena in LLMs, 2024): a letter says by itself which letters may follow, so that no
// head has anything to look for; only behind the mark "=" has one, since there the letter before the mark is said
// again. A head that copies then needs a place to rest everywhere else, where it brings nothing along: the first token,
// a sink.

#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"
#include "core/train/tasks.h"

namespace headscope {

/// The language: a Markov chain over letters with marks strewn in. Immutable; any thread.
class Backcopy {
 public:
  static constexpr char mark = '=';

  /// Of the settings' `letters`, from 'a' on, and `mark_share`, the chance that a mark follows a letter. The chain is
  /// drawn from their `seed`: each letter has four followers, one of which leads through all letters in a ring.
  explicit Backcopy(const TaskSettings& settings);

  /// `length` characters from the beginning of a text.
  std::string sample(Random& random, int length) const;
  /// log p of such a text in nats; −∞ when it is none. The first letter can be any.
  double log_probability(std::string_view text) const;
  /// Mean nats of a character far from the beginning: Σ −p log p, of a letter by its stationary share.
  double entropy() const;

 private:
  double follows(char before, char next) const;  ///< p(next | before), neither of them a mark

  int letters_;
  double marks_;
  std::vector<int> followers_;  // (letter, 4), likeliest first
};

/// Rows of it, each from the beginning of a text behind the end-of-text token; a token is a character.
class BackcopyTask final : public Task {
 public:
  explicit BackcopyTask(const TaskSettings& settings);
  Batch batch(std::int64_t step, int sequences, int length) const override;
  std::string probe_text(int length) const override;

 private:
  HeldOut draw_held_out(int rows, int sequences, int length) const override;

  Backcopy language_;
};

}  // namespace headscope
