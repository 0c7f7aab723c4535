#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/text/pattern.h"

namespace headscope::pattern_test {

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

TEST_CASE(
    "numbers that are no digits are no words, but for those of Latin-1 outside of classes; letters in circles are") {
  const std::string text = "a\u2074b\u00B2c\u24B6d\u2167";  // ⁴ ² Ⓐ Ⅷ
  CHECK(matches(R"(\w+)", text) == Strings{"a", "b\u00B2c\u24B6d\u2167"});
  CHECK(matches(R"([\w]+)", text) == Strings{"a", "b", "c\u24B6d\u2167"});
  CHECK(matches(R"(\W)", text) == Strings{"\u2074"});
  CHECK(matches(R"([\W])", text) == Strings{"\u2074", "\u00B2"});
  CHECK(matches(R"([c\W^]+)", text) == Strings{"\u2074", "\u00B2c"});
  CHECK(matches(R"([^\W\d]+)", text) == Strings{"a", "b", "c\u24B6d\u2167"});
  CHECK(matches(R"([^\W])", "a-") == Strings{"a"});
  CHECK(matches(R"(\w+|[^\w\s]+)", "!\u00B223") == Strings{"!\u00B2", "23"});
  CHECK(matches(R"(\b.)", "\u2074a") == Strings{"a"});
  CHECK(matches(R"([\u2070-\u2079])", text) == Strings{"\u2074"});
}

TEST_CASE("POSIX classes are Oniguruma's") {
  const std::string text = "a1_-$\u20AC\u00B2\u0345\u2160\u24D0 \u180E";  // € ² ͅ Ⅰ ⓐ
  const std::pair<const char*, Strings> expected[] = {
      {"alpha", {"a", "\u0345", "\u2160", "\u24D0"}},
      {"alnum", {"a", "1", "\u0345", "\u2160", "\u24D0"}},
      {"upper", {"\u2160"}},
      {"lower", {"a", "\u0345", "\u24D0"}},
      {"punct", {"_", "-", "$", "\u20AC", "\u24D0"}},
      {"word", {"a", "1", "_", "\u0345", "\u2160", "\u24D0"}},
      {"space", {" "}},
      {"blank", {" "}},
      {"digit", {"1"}},
      {"cntrl", {}},
      {"graph", {"a", "1", "_", "-", "$", "\u20AC", "\u00B2", "\u0345", "\u2160", "\u24D0", "\u180E"}},
      {"ascii", {"a", "1", "_", "-", "$", " "}}};
  for (const auto& [name, found] : expected) {
    CAPTURE(name);
    CHECK(matches("[[:" + std::string(name) + ":]]", text) == found);
  }
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
  CHECK(matches("[^a[b\\]c]d]+", "xaybz]w") == Strings{"x", "y", "z", "w"});  // a union, as in Bloom's pattern
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
  for (const char* pattern : {"[a&&b]", "[a[^bc]]", "[a[]b]", "[a[bc]", R"(\p{N}{1,3}+)", R"(\pL)", "[[:alpha:]",
                              "[[:^alpha:]]", R"([\W-a])", R"(\u20)", "a\\", "(", "[a", "*"})
    CHECK_THROWS_AS(Pattern::regex(pattern, "file: key"), Error);
  try {
    Pattern::regex("(ab", "tokenizer.json: pattern");
  } catch (const Error& error) {
    CHECK(error.where == "tokenizer.json: pattern");
    CHECK(error.found.find("(ab") != std::string::npos);
  }
  CHECK_THROWS_AS(Pattern::literal("", "test"), Error);
}

TEST_CASE("half a character is nothing to match: \\C is refused where the pattern is read") {
  for (const char* pattern : {"\\C", "a\\C+", "(?:\\C)*é"})
    CHECK_THROWS_WITH_AS(Pattern::regex(pattern, "tokenizer.json: pattern"),
                         doctest::Contains("tokenizer.json: pattern: expected a regular expression"), Error);
}

TEST_CASE("matches are found however far apart they are, also at the very end and as characters of several bytes") {
  // The search is cut into stretches of some thousand places: matches before, at and over their ends.
  for (const std::size_t distance : {4094u, 4095u, 4096u, 4097u, 8192u, 8193u, 20'000u}) {
    CAPTURE(distance);
    for (const std::string filler : {"a", "灯"}) {
      std::string text;
      while (text.size() < distance) text += filler;
      const std::string two = text + "xyz" + text + "xyz";
      CHECK(matches("xy?z", two) == Strings{"xyz", "xyz"});
      CHECK(matches(Pattern::literal("xyz", "test"), two) == Strings{"xyz", "xyz"});
      CHECK(matches("(?<=xyz)$", two) == Strings{""});
      CHECK(matches(filler + "+", two) == Strings{text, text});
      CHECK(matches("(?<=(?:" + filler + ")x)yz$", two) == Strings{"yz"});
    }
  }
  CHECK(matches("b", std::string(10'000, 'a')).empty());
}

TEST_CASE("a search can be stopped") {
  std::stop_source stop;
  const Pattern pattern = Pattern::regex("a", "test");
  const std::string text(100'000, 'a');
  int found = 0;
  const auto count = [&](ByteRange) {
    if (++found == 1000) stop.request_stop();
  };
  CHECK_THROWS_AS(pattern.find_all(text, {0, text.size()}, count, stop.get_token()), Cancelled);
  CHECK(found == 1000);
  // Also between two matches that do not come.
  CHECK_THROWS_AS(Pattern::regex("b", "test").find_all(text, {0, text.size()}, count, stop.get_token()), Cancelled);
}

TEST_CASE("a run of white space as long as a text may be is within the limits") {
  const std::string llama3 =
      R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  CHECK(matches(llama3, std::string(3'000'000, ' ') + "a").size() == 2);
}

TEST_CASE("a pattern that explodes stops at a limit") {
  CHECK_THROWS_WITH_AS(matches("(a|aa)+$", std::string(60, 'a') + "b"),
                       doctest::Contains("within PCRE2's limits, found match limit exceeded at byte 0"), Error);
  CHECK_THROWS_AS(matches("^(([a-z])+.)+[A-Z]([a-z])+$", std::string(2000, 'a')), Error);
  CHECK_THROWS_AS(matches("(a+)+$(?<=b)", std::string(40, 'a') + "c"), Error);
}

TEST_CASE("a pattern that takes few ways at every place, but ever more in all of them, stops at a limit of the text") {
  // From each a to the end and back: n²/2 = 2 · 10¹⁰ ways, each place within what a single match may take.
  CHECK_THROWS_WITH_AS(matches("(?:a|b)+\\d", std::string(200'000, 'a')),
                       doctest::Contains("test: expected a pattern that splits this text within PCRE2's limits, found "
                                         "match limit exceeded at byte"),
                       Error);
  CHECK_THROWS_WITH(matches("(?:a|b)+\\d", std::string(200'000, 'a')), doctest::Contains("(?:a|b)+"));
  // The same where places that take many ways stand between thousands that take none.
  std::string sparse;
  for (int i = 0; i < 40; ++i) sparse += std::string(20'000, 'a') + std::string(9000, '.');
  CHECK_THROWS_AS(matches("(?:a|b)+\\d", sparse), Error);
  // Many long matches are within it: each is paid once.
  std::string runs;
  for (int i = 0; i < 100; ++i) runs += std::string(30'000, 'a') + "7 ";
  CHECK(matches("(?:a|b)+\\d", runs).size() == 100);
}

}  // namespace headscope::pattern_test
