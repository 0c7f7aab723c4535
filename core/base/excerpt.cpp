#include "core/base/excerpt.h"

#include <fmt/format.h>

#include "core/base/utf8.h"

namespace headscope {

namespace {

bool control(std::int32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

/// Left-to-right and right-to-left marks, embeddings, overrides, isolates; line and paragraph separators.
bool turns_the_line(std::int32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string excerpt(std::string_view text, std::size_t most, Lines lines) {
  std::string out;
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text.size(); ++characters) {
    if (characters == most) return out + "…";
    const auto point = valid_code_point_at(text, at);
    const std::string_view bytes = text.substr(at, point ? static_cast<std::size_t>(point->length) : 1);
    if (point && point->value == '\n' && lines == Lines::kept)
      out += '\n';
    else if (!point || control(point->value))
      for (const char byte : bytes) out += fmt::format("<{}>", hex_byte(static_cast<unsigned char>(byte)));
    else if (turns_the_line(point->value))
      out += fmt::format("<U+{:04X}>", point->value);
    else
      out += bytes;
    at += bytes.size();
  }
  return out;
}

}  // namespace headscope
