#pragma once
// The words of the field and of the window, each in two sentences, with the lesson that teaches it and the page that
// shows it: assets/glossary.txt. A translation lies beside it, glossary.de.txt: it says what people read, and takes the
// rest from the original.

#include <string>
#include <vector>

namespace headscope {

struct GlossaryEntry {
  std::string term;                ///< "query"; the same in every language
  std::string title;               ///< as it is shown; the term, where nothing else is said
  std::vector<std::string> words;  ///< what else people call it
  std::string text, formula;       ///< the formula may be empty
  std::string lesson, page;        ///< their ids, "03-query-key-value", "mechanisms/softmax"; may be empty
};

/// Entries apart by an empty line, "key: value" in each; lines that begin with # say nothing. Throws Error at `where`,
/// naming the line, on a key that is not known, a term without text, and one that stands there twice.
std::vector<GlossaryEntry> parse_glossary(const std::string& text, const std::string& where);

/// The original in the words of a translation, and in its order; what the translation lacks comes last, as it is. Words
/// and terms of both find an entry.
std::vector<GlossaryEntry> translated_glossary(const std::vector<GlossaryEntry>& original,
                                               const std::vector<GlossaryEntry>& translation);
/// Where a translation does not have the terms of the original, gives a lesson or a page of its own, or a formula with
/// other signs and numbers; a sentence each.
std::vector<std::string> glossary_faults(const std::vector<GlossaryEntry>& original,
                                         const std::vector<GlossaryEntry>& translation);

}  // namespace headscope
