#include "core/text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "core/base/nth.h"
#include "core/base/utf8.h"

namespace headscope {

namespace {

constexpr bool printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  std::array<std::int32_t, 256> symbol{};
  std::array<std::int32_t, 0x144> byte{};  // by code point; −1 = not in the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  std::int32_t next = 0x100;
  for (std::int32_t b = 0; b < 256; ++b) {
    const std::int32_t symbol = printable(b) ? b : next++;
    nth(alphabet.symbol, b) = symbol;
    nth(alphabet.byte, symbol) = b;
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string byte_alphabet_symbol(unsigned char byte) {
  return to_utf8(kAlphabet.symbol[byte]);
}

std::optional<std::string> bytes_from_alphabet(std::string_view spelling) {
  std::string bytes;
  for (std::size_t at = 0; at < spelling.size();) {
    const CodePoint point = code_point_at(spelling, at);
    const auto symbol = static_cast<std::size_t>(point.value);
    if (symbol >= kAlphabet.byte.size() || kAlphabet.byte[symbol] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte[symbol]);
    at += static_cast<std::size_t>(point.length);
  }
  return bytes;
}

}  // namespace headscope
