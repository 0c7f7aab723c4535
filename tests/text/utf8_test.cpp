#include <doctest/doctest.h>

#include "core/base/utf8.h"
#include "core/text/byte_alphabet.h"
#include "core/text/tokenizer.h"

namespace headscope::utf8_test {

TEST_CASE("the first invalid byte of a text is found, whatever is wrong with it") {
  CHECK(!first_invalid_utf8("").has_value());
  CHECK(!first_invalid_utf8("plain, é, 灯, 🙂, \U0010FFFF").has_value());
  CHECK(!first_invalid_utf8(std::string_view("\0a", 2)).has_value());
  CHECK(first_invalid_utf8("ab\x80") == 2);             // a continuation byte alone
  CHECK(first_invalid_utf8("a\xC3") == 1);              // cut off
  CHECK(first_invalid_utf8("灯\xE7\x81") == 3);         // cut off one later
  CHECK(first_invalid_utf8("\xC0\x80") == 0);           // overlong
  CHECK(first_invalid_utf8("\xE0\x80\x80") == 0);       // overlong
  CHECK(first_invalid_utf8("x\xF0\x82\x82\xAC") == 1);  // overlong
  CHECK(first_invalid_utf8("\xED\xA0\x80") == 0);       // a surrogate
  CHECK(first_invalid_utf8("\xF4\x90\x80\x80") == 0);   // above U+10FFFF
  CHECK(first_invalid_utf8("ok\xFFok") == 2);
}

TEST_CASE("labels show what cannot be seen") {
  CHECK(visible_label(" the") == "␣the");
  CHECK(visible_label("\n\t") == "⏎⇥");
  CHECK(visible_label("\r") == "<0D>");
  CHECK(visible_label(std::string_view("\0", 1)) == "<00>");
  CHECK(visible_label("\x7F") == "<7F>");
  CHECK(visible_label("\xC2\x85") == "<C2><85>");  // NEL, a control of two bytes
  CHECK(visible_label("\xE2") == "<E2>");
  CHECK(visible_label("a\x82\xAC") == "a<82><AC>");
  CHECK(visible_label("é灯🙂") == "é灯🙂");
  CHECK(visible_label("\u00A0") == "<U+00A0>");
  CHECK(visible_label("\u200D") == "<U+200D>");
  CHECK(visible_label("\u3000") == "<U+3000>");
  CHECK(visible_label("\uE000") == "<U+E000>");
  CHECK(visible_label("\u0301") == "◌\u0301");
  CHECK(visible_label("e\u0301") == "e\u0301");
  CHECK(visible_label("") == "∅");
}

TEST_CASE("white space is Unicode's, not C's and not PCRE2's") {
  int count = 0;
  for (std::int32_t c = 0; c <= 0x10FFFF; ++c) count += is_white_space(c);
  CHECK(count == 25);  // the size of White_Space in the Unicode Character Database
  CHECK(is_white_space(0x85));
  CHECK(is_white_space(0x3000));
  CHECK(!is_white_space(0x180E));
  CHECK(!is_white_space(0x200B));
  CHECK(!is_white_space(0x1C));
}

TEST_CASE("characters are found from either side") {
  const std::string text = "aé灯🙂";
  CHECK(code_point_at(text, 1).value == 0xE9);
  CHECK(code_point_at(text, 3).length == 3);
  CHECK(previous_code_point(text, 10) == 6);
  CHECK(previous_code_point(text, 6) == 3);
  CHECK(previous_code_point(text, 1) == 0);
  CHECK(to_utf8(0x1F642) == "🙂");
  CHECK(replace_all("a.b..", ".", "--") == "a--b----");
}

TEST_CASE("GPT-2's byte alphabet writes every byte as its own character") {
  CHECK(byte_alphabet_symbol(' ') == "Ġ");
  CHECK(byte_alphabet_symbol('\n') == "Ċ");
  CHECK(byte_alphabet_symbol('a') == "a");
  CHECK(byte_alphabet_symbol(0xAD) == "Ń");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string symbol = byte_alphabet_symbol(static_cast<unsigned char>(byte));
    CHECK(bytes_from_alphabet(symbol) == std::string(1, static_cast<char>(byte)));
    all += symbol;
  }
  CHECK(bytes_from_alphabet(all)->size() == 256);
  CHECK(!bytes_from_alphabet("a b").has_value());
  CHECK(!bytes_from_alphabet("▁").has_value());
}

}  // namespace headscope::utf8_test

TEST_CASE("capitals are of Latin letters alone") {
  CHECK(headscope::latin_capital('a') == 'A');
  CHECK(headscope::latin_capital('Z') == 'Z');
  CHECK(headscope::latin_capital(0xe4) == 0xc4);    // ä
  CHECK(headscope::latin_capital(0x161) == 0x160);  // š
  CHECK(headscope::latin_capital(0x3c3) == 0x3c3);  // σ
  CHECK(headscope::latin_capital(0xb5) == 0xb5);    // µ
  CHECK(headscope::latin_capital('1') == '1');
}
