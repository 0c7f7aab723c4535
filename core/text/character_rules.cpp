#include "core/text/character_rules.h"

#include <utf8proc.h>

#include "core/base/utf8.h"

namespace headscope {

namespace {

bool in(std::int32_t character, std::int32_t first, std::int32_t last) {
  return character >= first && character <= last;
}

}  // namespace

std::optional<std::string> lower_case(std::int32_t character) {
  if (character == 0x130) return "i\xCC\x87";
  const std::int32_t lower = utf8proc_tolower(character);
  return lower == character ? std::nullopt : std::optional(to_utf8(lower));
}

std::optional<std::string> without_marks(std::int32_t character) {
  const auto category = utf8proc_category(character);
  const bool mark =
      category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
  return mark ? std::optional<std::string>("") : std::nullopt;
}

std::optional<std::string> without_nonspacing_marks(std::int32_t character) {
  return utf8proc_category(character) == UTF8PROC_CATEGORY_MN ? std::optional<std::string>("") : std::nullopt;
}

std::optional<std::string> clean_text(std::int32_t character) {
  if (character == '\t' || character == '\n' || character == '\r') return " ";
  const auto category = utf8proc_category(character);
  if (character == 0 || character == 0xFFFD || category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
      category == UTF8PROC_CATEGORY_CO)
    return "";
  return is_white_space(character) && character != ' ' ? std::optional<std::string>(" ") : std::nullopt;
}

std::optional<std::string> ideographs_apart(std::int32_t character) {
  const bool ideograph = in(character, 0x4E00, 0x9FFF) || in(character, 0x3400, 0x4DBF) ||
                         in(character, 0xF900, 0xFAFF) || in(character, 0x20000, 0x2A6DF) ||
                         in(character, 0x2A700, 0x2B81F) || in(character, 0x2B920, 0x2CEAF) ||
                         in(character, 0x2F800, 0x2FA1F);
  return ideograph ? std::optional(" " + to_utf8(character) + " ") : std::nullopt;
}

std::optional<std::string> nmt(std::int32_t character) {
  if (in(character, 1, 8) || character == 0xB || in(character, 0xE, 0x1F) || character == 0x7F || character == 0x8F ||
      character == 0x9F)
    return "";
  if (character == 9 || character == 0xA || character == 0xC || character == 0xD || character == 0x1680 ||
      in(character, 0x200B, 0x200F) || character == 0x2028 || character == 0x2029 || character == 0x2581 ||
      character == 0xFEFF || character == 0xFFFD)
    return " ";
  return std::nullopt;
}

}  // namespace headscope
