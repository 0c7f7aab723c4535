#include "app/widgets/line_breaks.h"

#include "core/base/scripts.h"
#include "core/base/utf8.h"

namespace headscope {

namespace {

/// What closes, and the mark of emphasis, which is not drawn (*).
bool begins_no_line(std::int32_t c) {
  static constexpr std::int32_t closing[] = {0x3001, 0x3002, 0x3009, 0x300B, 0x300D, 0x300F, 0x3011, 0xFF01, 0xFF09,
                                             0xFF0C, 0xFF0E, 0xFF1A, 0xFF1B, 0xFF1F, 0x2019, 0x201D, 0x2026, ',',
                                             '.',    ';',    ':',    '?',    '!',    ')',    '*'};
  for (const std::int32_t each : closing)
    if (c == each) return true;
  return false;
}
bool ends_no_line(std::int32_t c) {
  static constexpr std::int32_t opening[] = {0x3008, 0x300A, 0x300C, 0x300E, 0x3010, 0xFF08, 0x2018, 0x201C, '(', '*'};
  for (const std::int32_t each : opening)
    if (c == each) return true;
  return false;
}
bool is_wide_mark(std::int32_t c) {
  return (c >= 0x3001 && c <= 0x3011) || (c >= 0xFF01 && c <= 0xFF1F);
}

}  // namespace

std::vector<std::string_view> breakable_parts(std::string_view word) {
  std::vector<std::string_view> parts;
  std::size_t from = 0;
  std::int32_t before = 0;
  for (std::size_t at = 0; at < word.size();) {
    const auto here = valid_code_point_at(word, at);
    const std::int32_t c = here ? here->value : 0;
    const bool wide = is_han_or_kana(c) || is_han_or_kana(before) || is_wide_mark(before);
    if (at > from && wide && !begins_no_line(c) && !ends_no_line(before)) {
      parts.push_back(word.substr(from, at - from));
      from = at;
    }
    before = c;
    at += here ? static_cast<std::size_t>(here->length) : 1;
  }
  if (from < word.size()) parts.push_back(word.substr(from));
  return parts;
}

bool letters_stand_alone(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto here = valid_code_point_at(text, at);
    at += here ? static_cast<std::size_t>(here->length) : 1;
    const std::int32_t c = here ? here->value : 0xFFFD;
    const bool marks_or_joins =
        (c >= 0x0300 && c < 0x0370) || (c >= 0x0483 && c < 0x048A) || (c >= 0x0590 && c < 0x10A0) ||
        (c >= 0x1100 && c < 0x1200) || (c >= 0x1700 && c < 0x1E00) || (c >= 0x200C && c < 0x2010) ||
        (c >= 0x302A && c < 0x3030) || c == 0x3099 || c == 0x309A || (c >= 0xA800 && c < 0xAC00) ||
        (c >= 0xFB1D && c < 0xFE30) || (c >= 0xFE70 && c < 0xFF00) || (c >= 0x10800 && c < 0x12000);
    if (marks_or_joins) return false;
  }
  return true;
}

}  // namespace headscope
