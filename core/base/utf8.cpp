#include "core/base/utf8.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

namespace headscope {

namespace {

/// Length of the valid character at `at`, or 0. utf8proc refuses overlong forms, surrogates and values above U+10FFFF.
int read_code_point(std::string_view text, std::size_t at, std::int32_t& value) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) {
    value = lead;
    return 1;
  }
  utf8proc_int32_t read = 0;
  const std::size_t left = text.size() - at;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                       static_cast<utf8proc_ssize_t>(left < 4 ? left : 4), &read);
  if (length <= 0) return 0;
  value = read;
  return static_cast<int>(length);
}

void append_label(std::string& label, std::int32_t value, std::string_view bytes) {
  switch (value) {
    case ' ':
      label += "␣";
      return;
    case '\n':
      label += "⏎";
      return;
    case '\t':
      label += "⇥";
      return;
    default:
      break;
  }
  switch (utf8proc_category(value)) {
    case UTF8PROC_CATEGORY_CC:
      for (const char byte : bytes) label += fmt::format("<{}>", hex_byte(static_cast<unsigned char>(byte)));
      return;
    // Characters that show nothing, or that no font can show: by number, so that two labels never look alike.
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      label += fmt::format("<U+{:04X}>", value);
      return;
    // A mark without its letter (a token of its own) is carried by a dotted circle, the Unicode convention.
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      if (label.empty()) label += "◌";
      break;
    default:
      break;
  }
  label += bytes;
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t at) {
  CodePoint point;
  point.length = read_code_point(text, at, point.value);
  assert(point.length > 0);
  return point;
}

std::optional<CodePoint> valid_code_point_at(std::string_view text, std::size_t at) {
  CodePoint point;
  point.length = read_code_point(text, at, point.value);
  if (point.length == 0) return std::nullopt;
  return point;
}

std::size_t previous_code_point(std::string_view text, std::size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

std::string to_utf8(std::int32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(code_point, bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length)};
}

bool is_white_space(std::int32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word(std::int32_t code_point) {
  if (code_point == 0x200C || code_point == 0x200D) return true;
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    case UTF8PROC_CATEGORY_SO: {  // letters in circles and squares, which are Alphabetic
      constexpr std::pair<std::int32_t, std::int32_t> letters[] = {
          {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
      return std::ranges::any_of(
          letters, [&](const auto& range) { return code_point >= range.first && code_point <= range.second; });
    }
    default:
      return false;
  }
}

bool is_punctuation(std::int32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

std::int32_t latin_capital(std::int32_t code_point) {
  constexpr std::int32_t micro_sign = 0xb5, latin_end = 0x250;
  return code_point < latin_end && code_point != micro_sign ? utf8proc_toupper(code_point) : code_point;
}

std::string hex_byte(unsigned char byte) {
  return fmt::format("{:02X}", byte);
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found; (found = text.find(from, at)) != std::string_view::npos; at = found + from.size()) {
    out.append(text, at, found - at);
    out.append(to);
  }
  out.append(text, at);
  return out;
}

std::string visible_label(std::string_view bytes) {
  if (bytes.empty()) return "∅";
  std::string label;
  for (std::size_t at = 0; at < bytes.size();) {
    std::int32_t value = 0;
    if (const int length = read_code_point(bytes, at, value)) {
      append_label(label, value, bytes.substr(at, static_cast<std::size_t>(length)));
      at += static_cast<std::size_t>(length);
    } else {
      label += fmt::format("<{}>", hex_byte(static_cast<unsigned char>(bytes[at])));
      ++at;
    }
  }
  return label;
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    std::int32_t value = 0;
    const int length = read_code_point(text, at, value);
    if (length == 0) return at;
    at += static_cast<std::size_t>(length);
  }
  return std::nullopt;
}

}  // namespace headscope
