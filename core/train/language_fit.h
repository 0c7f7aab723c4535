#pragma once
// Whether a text that somebody wrote lies in a language, where it leaves it, and which text of the language is nearest.
// A prompt is the beginning of a text, so that is all that is asked of it.

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/train/language.h"

namespace headscope {

struct LanguageFit {
  bool inside = true;   ///< some text of the language begins so
  TextSpan word = {};   ///< else: the first word that no text of the language goes on with
  bool known = true;    ///< … and whether it is a word of the language elsewhere
  std::string nearest;  ///< … and the nearest beginning of a text of the language; "" = none was found
};

/// Whether some text of `grammar` has this word. Capitals do not count. Of a grammar that makes up names, what can be
/// put together of its pieces counts, too.
bool knows_word(const Grammar& grammar, std::string_view word);

/// How many bytes of `text` the texts of the language share at most with it, from its beginning.
std::size_t longest_beginning(const Grammar& grammar, std::string_view text, const std::stop_token& stop = {});

/// The beginning of a text that takes the fewest changes to become `text`: words left out, put in or exchanged, those
/// that are spelled alike for less (Levenshtein's distance over words); of equals the most probable. Found by going on
/// word by word with the few hundred beginnings that are nearest so far, so a nearer one may be missed. "" where `text`
/// has more words than `most_words`.
std::string nearest_beginning(const Grammar& grammar, std::string_view text, const std::stop_token& stop = {},
                              std::size_t most_words = 120);

/// All of it. Blanks at the end of `text` do not count. Throws Cancelled when `stop` is asked for.
LanguageFit fit_to_language(const Grammar& grammar, std::string_view text, const std::stop_token& stop = {});

}  // namespace headscope
