#pragma once
// Attention between words instead of between the pieces of words that a tokenizer makes: attention to a word is the sum
// over its tokens, attention from a word the mean over its tokens (Clark et al., What Does BERT Look At?, 2019, section
// 4.1), so that a row of probabilities still sums to 1. A trace in words is a trace again: every metric, scene and
// exporter takes it as it is.
//
// Where words begin (the bytes of all tokens one after another are read as UTF-8):
//   - at white space that follows something else: a space belongs to the word after it, as in byte-level BPE;
//   - before and after a run of line breaks, which is a word of its own;
//   - where letters, digits, marks and "_" end and punctuation begins, or the other way round; an apostrophe between
//   two
//     of them joins ("don't" is one word);
//   - before and after every Han or Kana character, since these scripts put no spaces;
//   - at a token without bytes (a special token), and after it.
// A token is never cut: one that holds two words is one word, and so are tokens that share a character.

#include <functional>
#include <span>
#include <vector>

#include "core/base/nth.h"
#include "core/trace/trace.h"

namespace headscope {

/// Consecutive tokens that make up words.
struct WordGroups {
  std::vector<Index> begin;  ///< first token of every word, ascending, and at the end the number of tokens

  Index words() const { return begin.empty() ? 0 : static_cast<Index>(begin.size()) - 1; }
  Index tokens() const { return begin.empty() ? 0 : begin.back(); }
  KeyRange tokens_of(Index word) const { return {nth(begin, word), begin[static_cast<std::size_t>(word) + 1]}; }
  /// REQUIRES 0 ≤ token < tokens().
  Index word_of(Index token) const;
};

WordGroups word_groups(std::span<const Token> tokens);

/// More words than this make no dense map: the request is refused with an Error.
inline constexpr Index most_words = 4096;

/// Whether every map of a trace can be read whole within a second or so, and be kept dense: at most 2²⁸ stored weights,
/// or 2²⁵ that are computed from factors. Past that only single heads are shown in words.
bool maps_in_reach(const Trace& trace);

/// Dense, (words of the query rows, words). `words` are those of the whole text; a word that is only partly among the
/// query rows counts with the rows that are there. A word may see another when one of its tokens may see one of the
/// other's. Reads a factored map band by band. `links`, of the words, may be null. Throws Error past most_words.
AttentionMap map_in_words(const AttentionMap& map, const WordGroups& words, const TokenLinks* links);

/// One cell of that map, for which none has to be made. NaN when no pair of its tokens may see one another.
float weight_in_words(const AttentionMap& map, const WordGroups& words, Index query_word, Index key_word);

/// The trace with words for tokens: bytes and labels joined; ids number the different words of this text from 0, so
/// that repeated words are found (they mean nothing to a vocabulary). Throws Error on maps between two texts. Logits
/// and recorded sites, which belong to tokens, are left out, and so are the maps that `wanted` declines.
Trace in_words(const Trace& trace, const WordGroups& words, const std::function<bool(HeadId head)>& wanted = nullptr);
inline Trace in_words(const Trace& trace) {
  return in_words(trace, word_groups(trace.tokens));
}

}  // namespace headscope
