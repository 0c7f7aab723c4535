#include "core/text/precompiled_charsmap.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace headscope {

namespace {

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

// A unit of the double array.
bool has_leaf(std::uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
std::uint32_t value_of(std::uint32_t unit) {
  return unit & 0x7FFFFFFF;
}
std::uint32_t label_of(std::uint32_t unit) {
  return unit & 0x800000FF;
}
std::uint32_t offset_of(std::uint32_t unit) {
  return (unit >> 10) << ((unit & 0x200) >> 6);
}

}  // namespace

PrecompiledCharsmap::PrecompiledCharsmap(std::string_view table, const std::string& where) {
  if (table.size() < 4) throw Error(where, "a table of characters", fmt::format("{} bytes", table.size()));
  const std::uint32_t size = little_endian(table);
  table.remove_prefix(4);
  if (size > table.size() || size % 4 != 0 || size == 0)
    throw Error(where, fmt::format("a trie of whole units within the table's {} bytes", table.size()),
                fmt::format("{} bytes", size));
  units_.reserve(size / 4);
  for (std::size_t at = 0; at < size; at += 4) units_.push_back(little_endian(table.substr(at)));
  replacements_ = table.substr(size);
  if (const auto bad = first_invalid_utf8(replacements_))
    throw Error(where, "replacements in valid UTF-8", fmt::format("an invalid byte at offset {}", 4 + size + *bad));
}

std::optional<std::string_view> PrecompiledCharsmap::replacement(std::string_view text) const {
  std::uint32_t node = offset_of(units_.front());
  for (const char c : text) {
    const std::uint32_t byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label_of(units_[node]) != byte) return std::nullopt;
    const std::uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) return std::nullopt;
    const std::size_t begin = value_of(units_[node]);
    if (begin >= replacements_.size() || (static_cast<unsigned char>(replacements_[begin]) & 0xC0) == 0x80)
      return std::nullopt;
    const std::string_view rest = std::string_view(replacements_).substr(begin);
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

std::string bytes_from_base64(std::string_view text, const std::string& where) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int count = 0;
  const std::string_view body = text.substr(0, text.find_last_not_of('=') + 1);
  for (std::size_t at = 0; at < body.size(); ++at) {
    const std::size_t digit = alphabet.find(body[at]);
    if (digit == std::string_view::npos)
      throw Error(where, "Base64", fmt::format("'{}' at offset {}", visible_label(body.substr(at, 1)), at));
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return bytes;
}

}  // namespace headscope
