#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/text/pattern.h"

using namespace headscope;
using Strings = std::vector<std::string>;

namespace {

Strings matches(const Pattern& pattern, const std::string& text) {
  Strings found;
  pattern.find_all(text, {0, text.size()},
                   [&](ByteRange r) { found.push_back(text.substr(r.begin, r.end - r.begin)); });
  return found;
}
Strings matches(const std::string& regex, const std::string& text) {
  return matches(Pattern::regex(regex, "test"), text);
}

}  // namespace

TEST_CASE("GPT-2's pattern leaves one space for the next word") {
  const std::string words(Pattern::gpt2_words());
  CHECK(matches(words, "I've  been\n\n here") == Strings{"I", "'ve", " ", " been", "\n\n", " here"});
  CHECK(matches(words, "x1²٣ ½!?") == Strings{"x", "1²٣", " ½", "!?"});
  CHECK(matches(words, "DON'T") == Strings{"DON", "'", "T"});
}

TEST_CASE("\\s is White_Space: with U+0085, without U+180E, in and out of classes") {
  const std::string text = "a\u0085b\u180Ec\u00A0d";
  CHECK(matches(R"(\s)", text) == Strings{"\u0085", "\u00A0"});
  CHECK(matches(R"([\sx])", text) == Strings{"\u0085", "\u00A0"});
  CHECK(matches(R"(\S+)", text) == Strings{"a", "b\u180Ec", "d"});
  CHECK(matches(R"([^\s]+)", text) == Strings{"a", "b\u180Ec", "d"});
  CHECK(matches("[^\\S\u00A0]", "x y\u00A0") == Strings{" "});
}

TEST_CASE("words are letters, marks, numbers and connectors, as in Oniguruma") {
  CHECK(matches(R"(\w+)", "ab_1 e\u0301² x‿y-z") == Strings{"ab_1", "e\u0301²", "x‿y", "z"});
  CHECK(matches(R"(\W)", "a-b") == Strings{"-"});
  CHECK(matches(R"([^\W\d]+)", "ab12c") == Strings{"ab", "c"});
  CHECK(matches(R"(\b.)", "e\u0301a b") == Strings{"e", " ", "b"});
  CHECK(matches(R"(\h+)", "beefy 09") == Strings{"beef", "09"});
}

TEST_CASE("properties: scripts mean Script, long names work, negation in both spellings") {
  CHECK(matches(R"(\p{Han}+)", "灯台の灯") == Strings{"灯台", "灯"});
  CHECK(matches(R"(\p{Han})", "、") == Strings{});  // Script_Extensions would find it
  CHECK(matches(R"(\p{Letter}+)", "ab1") == Strings{"ab"});
  CHECK(matches(R"(\p{^L}+|\P{N})", "1a") == Strings{"1", "a"});
}

TEST_CASE("flags and intervals keep their Ruby meaning") {
  CHECK(matches("(?i:'s|'t)", "'S't") == Strings{"'S", "'t"});
  CHECK(matches("a.b", "a\nb") == Strings{});
  CHECK(matches("(?m:a.b)", "a\nb") == Strings{"a\nb"});
  CHECK(matches("^.", "x\ny") == Strings{"x", "y"});
  CHECK(matches("a{,2}b", "aaab") == Strings{"aab"});
  CHECK(matches("[]a]", "]") == Strings{"]"});
  CHECK(matches("a?+b++", "abb") == Strings{"abb"});
}

TEST_CASE("an empty match cuts once and never loops") {
  std::vector<std::size_t> cuts;
  Pattern::regex("(?=[A-Z])", "test").find_all("fooBarBaz", {0, 9}, [&](ByteRange r) {
    CHECK(r.begin == r.end);
    cuts.push_back(r.begin);
  });
  CHECK(cuts == std::vector<std::size_t>{3, 6});
  CHECK(matches("x*", "éx") == Strings{"", "x"});
}

TEST_CASE("a literal pattern is no regular expression, and a range is all that is seen") {
  CHECK(matches(Pattern::literal("a.", "test"), "ab a.") == Strings{"a."});
  Strings found;
  const std::string text = "xay";
  Pattern::regex("(?<=x)a|a(?!y)", "test").find_all(text, {1, 2}, [&](ByteRange) { found.push_back("a"); });
  CHECK(found == Strings{"a"});
}

TEST_CASE("what PCRE2 would understand differently is refused") {
  for (const char* pattern : {"[a&&b]", "[a[bc]]", R"(\p{N}{1,3}+)", R"(\pL)", "[[:alpha:]", "a\\", "(", "[a", "*"})
    CHECK_THROWS_AS(Pattern::regex(pattern, "file: key"), Error);
  try {
    Pattern::regex("(ab", "tokenizer.json: pattern");
  } catch (const Error& error) {
    CHECK(error.where == "tokenizer.json: pattern");
    CHECK(error.found.find("(ab") != std::string::npos);
  }
  CHECK_THROWS_AS(Pattern::literal("", "test"), Error);
}

TEST_CASE("a pattern that explodes stops at a limit") {
  CHECK_THROWS_AS(matches("(a+)+$(?<=b)", std::string(40, 'a') + "c"), Error);
}
