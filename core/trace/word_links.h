#pragma once
// Which word belongs to which, told by rules that anybody can check, in place of a parser: for head classes such as
// verb → subject (Clark et al., What Does BERT Look At?, 2019; Voita et al., Analyzing Multi-Head Self-Attention,
// 2019).
//
// Of English: assets/word_kinds.txt lists function words, and common verbs, adjectives and names; a word that is not
// listed is a verb when it ends in -ed where a verb may stand, and else a noun.
//   noun phrase   determiners and numbers, then words that are neither listed as something else nor verbs; its noun is
//                 the last of them; a pronoun or a name is one of its own
//   subject       of a verb the noun phrase right before it, adverbs apart; of that, what stands before "of …", "near
//                 …"; behind a relative clause the noun before "who", "which", "that"; after "and" that of the verb
//                 before; after an auxiliary the auxiliary's
//   object        the noun phrase right behind a verb that is neither an auxiliary nor one of speech
//   antecedent    of he, him, his, she, her: the earlier mentions (the last 32), by name, noun or pronoun, of the
//                 person of that sex who was named last; "it" and "they" are left out, since no short rule tells whom
//                 they mean
// The rules for subjects look no further back than 40 words. Where a rule does not apply there is no link, and nothing
// is linked in a text that is not told to be English: by words that no other language has (the, and, which, they …),
// two different ones, which make up one word in twelve, or "the" alone, one word in eight; and few letters that English
// has not. On stories whose links are known tests/trace/word_links_test.cpp says how often the rules are right. What
// stands once, and where sentences end (. ! ? … 。 ！ ？ ؟ ।, and special tokens, which are of none), is told of any
// text of which the bytes are known.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/trace/attention_rule.h"
#include "core/trace/token_links.h"

namespace headscope {

/// From the last token of a word to the tokens of the word that it belongs to.
enum class WordRelation {
  subject,             ///< from a verb to its subject
  determiner,          ///< from a noun to its article or the like
  adjective,           ///< from an adjective to its noun, which stands ahead
  preposition_object,  ///< from a preposition to its noun, which stands ahead
  object_preposition,  ///< from that noun back to the preposition
  object,              ///< from a direct object to its verb
  antecedent,          ///< from he, she and their forms to earlier mentions of whom they most likely mean
};
inline constexpr std::size_t word_relations = 7;

struct WordLinks {
  std::array<TokenLinks::List, word_relations> relations;  ///< one row for each token of the text
  std::vector<std::int32_t> once;   ///< tokens of words that stand once in the text, its first token apart; ascending
  std::vector<KeyRange> sentences;  ///< tokens of every sentence, ascending
  bool english = false;             ///< whether it is told to be English, and so linked
  const TokenLinks::List& of(WordRelation relation) const { return relations[static_cast<std::size_t>(relation)]; }
};

/// Linear in the number of tokens, in time and in memory.
WordLinks word_links(std::span<const Token> tokens);

/// "verb → subject".
std::string_view title_of(WordRelation relation);

}  // namespace headscope
