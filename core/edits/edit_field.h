#pragma once
// What a form asks for: one value of an edit, as the capitals in its words name it.

#include <string>
#include <vector>

namespace headscope {

struct EditField {
  enum class Kind {
    number,
    whole,
    position,  ///< a token of the text; below 0 counted from the end
    choice,    ///< one of `choices`
    toggle,    ///< likewise, of two: off first
    word,      ///< anything without blanks
    line,      ///< anything up to the end of the line
    text,      ///< of any characters; stands in quotes
  } kind = Kind::word;
  std::string name;          ///< "TAU"
  std::string title;         ///< "Temperature"; what a form calls it
  std::string words;         ///< one sentence, or ""
  double low = 0, high = 0;  ///< of a slider; what can be written may reach further. high ≤ low: no slider
  bool logarithmic = false;
  std::vector<std::string> choices = {};
  std::string usual = {};  ///< before anybody wrote one
};

}  // namespace headscope
