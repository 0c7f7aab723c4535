#pragma once
// The words of the field and of the window, each in two sentences, with the lesson that teaches it and the page that
// shows it: assets/glossary.txt.

#include <string>
#include <vector>

namespace headscope {

struct GlossaryEntry {
  std::string term;                ///< "query"
  std::vector<std::string> words;  ///< what else people call it
  std::string text, formula;       ///< the formula may be empty
  std::string lesson, page;        ///< their ids, "03-query-key-value", "mechanisms/softmax"; may be empty
};

/// Entries apart by an empty line, "key: value" in each; lines that begin with # say nothing. Throws Error at `where`,
/// naming the line, on a key that is not known, a term without text, and one that stands there twice.
std::vector<GlossaryEntry> parse_glossary(const std::string& text, const std::string& where);

}  // namespace headscope
