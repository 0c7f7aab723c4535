#include "viz/scene/text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

namespace headscope {

namespace {

constexpr utf8proc_int32_t joiner = 0x200D, non_joiner = 0x200C;

struct Point32 {
  utf8proc_int32_t code = -1;  // −1: no UTF-8 here
  std::size_t bytes = 1;
};

Point32 read(std::string_view text, std::size_t at) {
  Point32 out;
  const auto* data = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at);
  const utf8proc_ssize_t n = utf8proc_iterate(data, static_cast<utf8proc_ssize_t>(text.size() - at), &out.code);
  if (n <= 0) return {};
  out.bytes = static_cast<std::size_t>(n);
  return out;
}

std::string shown(utf8proc_int32_t code, std::string_view own) {
  if (code < 0) return "\uFFFD";
  if (code < 0x20) return {'\xE2', '\x90', static_cast<char>(0x80 + code)};  // U+2400 + code
  if (code == 0x7F) return "␡";
  if (code == joiner || code == non_joiner) return std::string(own);
  const utf8proc_category_t category = utf8proc_category(code);
  const bool invisible = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                         category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP ||
                         (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF);
  return invisible ? fmt::format("<U+{:04X}>", code) : std::string(own);
}

/// Ends of the characters as people count them, in bytes.
std::vector<std::size_t> character_ends(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < text.size();) ends.push_back(at = character_end(text, at));
  if (ends.empty()) ends.push_back(0);
  return ends;
}

/// Start of the code point before `end`, or of a stray byte.
std::size_t point_before(std::string_view text, std::size_t end) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(end, 4); ++back)
    if (const Point32 p = read(text, end - back); p.code >= 0 && p.bytes == back) return end - back;
  return end - 1;
}

}  // namespace

std::string printable(std::string_view bytes, std::size_t limit) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    const Point32 p = read(bytes, at);
    const std::string piece = shown(p.code, bytes.substr(at, p.bytes));
    if (out.size() + piece.size() > limit) break;
    out += piece;
    at += p.bytes;
  }
  return out;
}

std::size_t character_end(std::string_view text, std::size_t begin) {
  utf8proc_int32_t before = -1, state = 0;
  std::size_t at = begin;
  while (at < text.size()) {
    const Point32 p = read(text, at);
    if (at > begin && (before < 0 || p.code < 0 || utf8proc_grapheme_break_stateful(before, p.code, &state))) break;
    before = p.code;
    at += p.bytes;
  }
  return at;
}

std::size_t character_begin(std::string_view text, std::size_t end) {
  // From a place where a character surely begins: an ASCII one, or far enough away.
  std::size_t at = end;
  for (int steps = 0; at > 0 && steps < 64; ++steps) {
    at = point_before(text, at);
    if (static_cast<unsigned char>(text[at]) < 0x80) break;
  }
  for (std::size_t next = at; (next = character_end(text, at)) < end;) at = next;
  return at;
}

std::size_t backspace_begin(std::string_view text, std::size_t end) {
  const std::size_t last = point_before(text, end), whole = character_begin(text, end);
  const utf8proc_int32_t code = read(text, last).code;
  if (code < 0 || last == whole) return whole;
  const utf8proc_category_t category = utf8proc_category(code);
  const bool chooses_form = code >= 0xFE00 && code <= 0xFE0F;  // belongs to an emoji
  const bool mark = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC;
  return mark && !chooses_form ? last : whole;
}

std::string elided(std::string_view text, const Font& font, double width, const TextMeasure& measure) {
  if (measure.width(text, font) <= width) return std::string(text);
  const std::vector<std::size_t> ends = character_ends(text);
  // Widths need not grow evenly with every character (joining scripts), but they grow: halve the range.
  std::size_t fits = 0, too_long = ends.size();
  while (too_long - fits > 1) {
    const std::size_t middle = (fits + too_long) / 2;
    const std::string candidate = std::string(text.substr(0, ends[middle - 1])) + "…";
    (measure.width(candidate, font) <= width ? fits : too_long) = middle;
  }
  return std::string(text.substr(0, fits ? ends[fits - 1] : 0)) + "…";
}

std::vector<std::string> wrapped(std::string_view text, const Font& font, double width, const TextMeasure& measure) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word(text.substr(at, end - at));
    const std::string longer = line.empty() ? word : line + ' ' + word;
    if (line.empty() || measure.width(longer, font) <= width) {
      line = longer;
    } else {
      lines.push_back(elided(line, font, width, measure));
      line = word;
    }
    at = end + 1;
  }
  if (!line.empty()) lines.push_back(elided(line, font, width, measure));
  return lines;
}

std::ptrdiff_t round_every(double step, double need) {
  for (std::ptrdiff_t power = 1;; power *= 10)
    for (const std::ptrdiff_t factor : {1, 2, 5})
      if (static_cast<double>(power * factor) * step >= need || power >= 1'000'000'000) return power * factor;
}

}  // namespace headscope
