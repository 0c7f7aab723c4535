#pragma once
// A template's source in words: text to print as it stands, and what stands in {{ }} and {% %}. Private to core/text.

#include <string>
#include <string_view>
#include <vector>

namespace headscope::jinja {

struct Token {
  enum class Kind { text, open_value, close_value, open_block, close_block, name, string, integer, number, sign, end };
  Kind kind = Kind::end;
  std::string text;  ///< a string's without quotes and escapes
  int line = 1;
};

/// As Jinja 2 reads with trim_blocks and lstrip_blocks, which Hugging Face's tools set: a line break behind a block and
/// white space before it on its line belong to the block; "-" takes all white space along. Throws Error at `where`,
/// naming the line.
std::vector<Token> tokens_of(const std::string& source, const std::string& where);

}  // namespace headscope::jinja
