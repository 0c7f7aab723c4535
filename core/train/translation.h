#pragma once
// Two small languages and sentences that mean the same in both, word by word: English of a few words, and a language
// made for this project, whose adjectives stand behind their noun, prepositions behind what they are of, adverbs first
// and verbs last. Its nouns are of two classes that English does not show: articles and adjectives agree with them in
// class and number, verbs with their subject in number, which an English past tense or "the" does not show either.
//
//   the small dogs saw an old woman near the river today
//   nun kor velor minor ma lana yena ka sila ip sekur
//   today the.PL dogs small.PL a.CLASS2 woman old.CLASS2 the.CLASS2 river near saw.PL
//
// A source determines its target, so that the cross-entropy of targets can come down to 0.

#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/metrics/alignment.h"
#include "core/train/language.h"

namespace headscope {

struct Translation {
  std::vector<std::string> source, target;  ///< words
  /// Of words. Sure: the one that a word stands for. Possible: also the noun that it agrees with.
  KnownAlignment known;

  std::string source_text() const;
  std::string target_text() const;
  /// Whether it is one that no model learns from: a seventh of all sources, told by their words. Of a sentence.
  bool held_out() const;
};

/// Where the words of such a text stand.
std::vector<TextSpan> spans_of(const std::vector<std::string>& words);

Translation draw_translation(Random& random);
/// "… and …", in both languages, where "et" stands for "and".
Translation joined(const Translation& first, const Translation& second);
/// Words that the sources of one sentence have.
inline constexpr int shortest_sentence = 5, longest_sentence = 12;
/// Different words in all targets, "et" among them.
int target_words();

}  // namespace headscope
