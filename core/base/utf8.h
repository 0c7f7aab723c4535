#pragma once
// UTF-8, how bytes are shown to people, and the few Unicode properties that tokenizers need. Text handed to these
// functions (visible_label, first_invalid_utf8 and valid_code_point_at aside) is valid UTF-8. All functions are pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headscope {

/// How a token is shown: spaces ␣, newlines ⏎, tabs ⇥, other controls and partial UTF-8 as <0A>. Never empty.
std::string visible_label(std::string_view bytes);

/// Byte offset of the first invalid UTF-8 sequence, or nullopt.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

struct CodePoint {
  std::int32_t value = 0;
  int length = 0;  ///< bytes, 1 to 4
};

/// The character that starts at byte `at` < text.size().
CodePoint code_point_at(std::string_view text, std::size_t at);
/// The same in text that may not be UTF-8; nullopt where no valid character starts.
std::optional<CodePoint> valid_code_point_at(std::string_view text, std::size_t at);

/// Byte length of the character whose first byte is `lead`.
inline int utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}
/// Byte offset of the character that ends just before `at` > 0.
std::size_t previous_code_point(std::string_view text, std::size_t at);

std::string to_utf8(std::int32_t code_point);

/// Unicode White_Space (the `\s` of tokenizer patterns; not the same as C's isspace or PCRE2's \s).
bool is_white_space(std::int32_t code_point);
/// A letter (also in a circle or square), mark, decimal digit, letter number or connector punctuation, or a zero-width
/// joiner: `\w` of Unicode's UTS #18, as Rust's patterns have it.
bool is_word(std::int32_t code_point);
/// Unicode general category P: full stops, commas, brackets, quotes, dashes …
bool is_punctuation(std::int32_t code_point);
/// The capital of a Latin letter, "Ä" of "ä"; other characters are themselves: Greek ones are symbols of formulas.
std::int32_t latin_capital(std::int32_t code_point);

/// The byte as two upper-case hexadecimal digits.
std::string hex_byte(unsigned char byte);

/// Every `from` (not empty) replaced by `to`, left to right.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace headscope
