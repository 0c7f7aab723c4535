// Normalisers and splitters by hand, with the way back to the original bytes.

#include <doctest/doctest.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/utf8.h"
#include "core/text/added_tokens.h"
#include "core/text/bpe.h"
#include "core/text/normalizer.h"
#include "core/text/pre_tokenizer.h"

namespace headscope::text_steps_test {

using Strings = std::vector<std::string>;
using Offsets = std::vector<std::int32_t>;

namespace {

AlignedText normal(NormalizerStep step, std::string_view text) {
  return normalize({std::move(step)}, AlignedText::of(text, 0));
}

Strings words(std::vector<PreTokenizerStep> steps, std::string_view text) {
  const Words split = split_into_words(steps, AlignedText::of(text, 0));
  Strings found;
  for (const ByteRange r : split.ranges) found.push_back(split.text.bytes.substr(r.begin, r.end - r.begin));
  return found;
}

SplitStep split_at(const char* regex, SplitStep::Behavior behavior, bool invert = false) {
  return {Pattern::regex(regex, "test"), behavior, invert};
}

}  // namespace

TEST_CASE("replaced bytes lead back to what they replace") {
  const AlignedText text = normal(ReplaceStep{Pattern::literal(" ", "test"), "▁"}, "a b");
  CHECK(text.bytes == "a▁b");
  CHECK(text.origin == Offsets{0, 1, 2, 2, 2, 3});
  const AlignedText front = normal(PrependStep{"▁"}, "ab");
  CHECK(front.bytes == "▁ab");
  CHECK(front.origin == Offsets{0, 0, 0, 0, 1, 2});
  CHECK(normal(PrependStep{"▁"}, "").bytes.empty());
  const AlignedText gone = normal(ReplaceStep{Pattern::literal("b", "test"), ""}, "abc");
  CHECK(gone.bytes == "ac");
  CHECK(gone.origin == Offsets{0, 2, 3});
}

TEST_CASE("normal forms compose across characters and keep their place") {
  const AlignedText text = normal(NormalFormStep{NormalForm::nfc}, "xe\u0301y灯\u1112\u1161\u11ab!");
  CHECK(text.bytes == "xéy灯한!");
  // x | e + U+0301 (3 bytes) as é (2 bytes) | y | 灯 | three jamo (9 bytes) as one syllable (3 bytes) | !
  CHECK(text.origin == Offsets{0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 17, 18});
  CHECK(normal(NormalFormStep{NormalForm::nfd}, "é").bytes == "e\u0301");
  CHECK(normal(NormalFormStep{NormalForm::nfkc}, "ﬁ²").bytes == "fi2");
  CHECK(normal(NormalFormStep{NormalForm::nfkd}, "ﬁé").bytes == "fie\u0301");
  CHECK(normal(NormalFormStep{NormalForm::nfc}, "\u0344").bytes == "\u0308\u0301");
}

TEST_CASE("normal forms are utf8proc's, whatever marks stand in whatever order") {
  // Marks of many classes, some with decompositions, one that decomposes into marks though its own class is 0; jamo.
  const std::int32_t points[] = {'a',    'e',    0x301,  0x316,  0x327, 0x323, 0x344,  0xF73,  0xF71,  0xF72,
                                 0x1112, 0x1161, 0x11AB, 0xAC00, 0x9C7, 0x9BE, 0x3099, 0x304B, 0xFDFA, 0xE9};
  Random random(7);
  for (int round = 0; round < 400; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) text += to_utf8(points[random.below(std::size(points))]);
    for (const auto& [form, whole] :
         {std::pair{NormalForm::nfc, &utf8proc_NFC}, std::pair{NormalForm::nfd, &utf8proc_NFD},
          std::pair{NormalForm::nfkc, &utf8proc_NFKC}, std::pair{NormalForm::nfkd, &utf8proc_NFKD}}) {
      const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> expected(
          whole(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())), &std::free);
      const AlignedText found = normal(NormalFormStep{form}, text);
      REQUIRE(found.bytes == reinterpret_cast<const char*>(expected.get()));
      REQUIRE(found.origin.size() == found.bytes.size() + 1);
      REQUIRE(std::ranges::is_sorted(found.origin));
      REQUIRE(found.origin.back() == static_cast<std::int32_t>(text.size()));
    }
  }
}

TEST_CASE("a run of combining marks takes work by its length, not by its square") {
  const auto taken = [](const std::string& unit, int times, NormalForm form) {
    std::string text = "a";
    for (int i = 0; i < times; ++i) text += unit;
    NormalFormWork work;
    const AlignedText made = normalize({NormalFormStep{form}}, AlignedText::of(text, 0), {}, &work);
    CHECK(made.bytes.size() >= text.size() / 2);
    return work;
  };
  for (const NormalForm form : {NormalForm::nfc, NormalForm::nfkd})
    for (const char* unit : {"\u0301\u0316", "\u0F73", "\u0F72\u0F73"}) {
      CAPTURE(unit);
      const NormalFormWork few = taken(unit, 1000, form), many = taken(unit, 16'000, form);
      CHECK(few.characters > 1000);
      CHECK(few.comparisons > 1000);
      CHECK(many.characters < 17 * few.characters);    // sixteen times the text; the square: 256
      CHECK(many.comparisons < 26 * few.comparisons);  // n log n: 16 · log(32,000) / log(2,000) ≈ 22
    }
}

TEST_CASE("rules that make a text grow stop at a bound, long before memory does") {
  std::vector<NormalizerStep> doubling;
  for (int i = 0; i < 60; ++i) doubling.push_back(ReplaceStep{Pattern::literal("a", "test"), "aa"});
  CHECK_THROWS_WITH_AS(normalize(doubling, AlignedText::of("a", 0)),
                       doctest::Contains("rules that make at most 16777220 bytes of this text, found more"), Error);
  doubling.resize(20);
  CHECK(normalize(doubling, AlignedText::of("a", 0)).bytes.size() == std::size_t{1} << 20);
  const ReplaceStep large{Pattern::regex("[a-z]", "test"), std::string(1 << 20, 'x')};
  CHECK_THROWS_AS(normalize({large}, AlignedText::of(std::string(100, 'b'), 0)), Error);
  CHECK_THROWS_AS(normalize({PrependStep{std::string(1 << 25, '_')}}, AlignedText::of("b", 0)), Error);
  const std::vector<PreTokenizerStep> prefixed{SplitStep{Pattern::literal(" ", "test"), SplitStep::Behavior::isolated},
                                               PrefixStep{.prefix = std::string(1 << 20, '_')}};
  CHECK(split_into_words(prefixed, AlignedText::of("a b", 0)).ranges.size() == 3);
  CHECK_THROWS_AS(split_into_words(prefixed, AlignedText::of("a b c d e f g h i j", 0)), Error);
  // A normal form's worst character stays far inside.
  std::string worst;
  for (int i = 0; i < 20'000; ++i) worst += "\uFDFA";
  CHECK(normalize({NormalFormStep{NormalForm::nfkd}}, AlignedText::of(worst, 0)).bytes.size() == 20'000 * 33);
}

TEST_CASE("normalising can be stopped between and inside its steps") {
  std::stop_source stop;
  stop.request_stop();
  for (const NormalizerStep& step : {NormalizerStep{CharacterStep{}}, NormalizerStep{NormalFormStep{NormalForm::nfd}},
                                     NormalizerStep{ReplaceStep{Pattern::literal("a", "test"), "b"}}})
    CHECK_THROWS_AS(normalize({step}, AlignedText::of("aé", 0), stop.get_token()), Cancelled);
}

TEST_CASE("lower case and stripping keep their place too") {
  const AlignedText lower = normal(CharacterStep{}, "AİB");
  CHECK(lower.bytes == "ai\u0307b");
  CHECK(lower.origin == Offsets{0, 1, 2, 3, 3, 4});
  const AlignedText stripped = normal(StripStep{true, false}, " \u3000a ");
  CHECK(stripped.bytes == "a ");
  CHECK(stripped.origin == Offsets{4, 5, 6});
}

TEST_CASE("each behaviour of a splitter") {
  using Behavior = SplitStep::Behavior;
  CHECK(words({split_at("-", Behavior::removed)}, "the-final--countdown") == Strings{"the", "final", "countdown"});
  CHECK(words({split_at("-", Behavior::isolated)}, "the-final--countdown") ==
        Strings{"the", "-", "final", "-", "-", "countdown"});
  CHECK(words({split_at("-", Behavior::merged_with_previous)}, "the-final--countdown") ==
        Strings{"the-", "final-", "-", "countdown"});
  CHECK(words({split_at("-", Behavior::merged_with_next)}, "the-final--countdown") ==
        Strings{"the", "-final", "-", "-countdown"});
  CHECK(words({split_at("-", Behavior::contiguous)}, "the-final--countdown") ==
        Strings{"the", "-", "final", "--", "countdown"});
  CHECK(words({split_at("[a-z]+", Behavior::removed, true)}, "the-final") == Strings{"the", "final"});
  CHECK(words({split_at("-", Behavior::removed)}, "").empty());
}

TEST_CASE("prefixes go to every word, to the first, or nowhere") {
  const auto mark = [](PrefixStep::Scheme scheme) { return PrefixStep{"▁", scheme, true}; };
  const SplitStep dots = split_at(R"(\.)", SplitStep::Behavior::isolated);
  CHECK(words({dots, mark(PrefixStep::Scheme::always)}, "a b.c") == Strings{"▁a▁b", "▁.", "▁c"});
  CHECK(words({dots, mark(PrefixStep::Scheme::first)}, "a b.c") == Strings{"▁a▁b", ".", "c"});
  CHECK(words({dots, mark(PrefixStep::Scheme::never)}, "a b.c") == Strings{"a▁b", ".", "c"});
  CHECK(words({PrefixStep{.prefix = " "}}, "a") == Strings{" a"});
  CHECK(words({PrefixStep{.prefix = " "}}, " a") == Strings{" a"});
}

TEST_CASE("added tokens: longest first, whole words, the white space beside them") {
  const AddedTokenFinder finder({{.content = "<a>", .id = 1, .special = true},
                                 {.content = "<a>b", .id = 2},
                                 {.content = "word", .id = 3, .single_word = true},
                                 {.content = "|", .id = 4, .lstrip = true, .rstrip = true}});
  CHECK(finder.find("x<a>b", 0, true)->id == 2);
  CHECK(finder.find("x<a>c", 0, true)->id == 1);
  CHECK(!finder.find("x<a>c", 0, false).has_value());
  for (const char* text : {"swords", "words", "sword", "éword", "word灯", "word_"})
    CHECK(!finder.find(text, 0, true).has_value());
  CHECK(finder.find("my word!", 0, true)->begin == 3);
  const auto bar = finder.find("a \u3000|\n b", 0, true);
  CHECK(bar->begin == 1);
  CHECK(bar->end == 8);
}

TEST_CASE(
    "added tokens: one that strips begins behind what the one before it took, and is none where nothing is left") {
  const AddedTokenFinder finder({{.content = "  ", .id = 1, .lstrip = true, .rstrip = true},
                                 {.content = "|", .id = 2, .rstrip = true},
                                 {.content = "\n", .id = 3},
                                 {.content = " x", .id = 4, .lstrip = true}});
  const auto spaces = finder.find("a    b", 0, true);
  CHECK(spaces->begin == 1);
  CHECK(spaces->end == 5);
  CHECK(spaces->content_end == 3);
  CHECK(!finder.find("a    b", spaces->content_end, true, {}, spaces->end).has_value());
  // What is left of one; and one that does not strip stays whole.
  const auto x = finder.find("| x", 1, true, {}, 2);
  CHECK(x->id == 4);
  CHECK(x->begin == 2);
  CHECK(x->end == 3);
  CHECK(finder.find("| \n", 1, true, {}, 3)->begin == 2);
  // A letter in a circle is of a word.
  const AddedTokenFinder word({{.content = "cat", .id = 5, .single_word = true}});
  CHECK(!word.find("cat\u24D0", 0, true).has_value());
  CHECK(word.find("cat\u00B2", 0, true).has_value());
}

TEST_CASE("added tokens: what is no match after all hides what overlaps; white space taken along may hold another") {
  const AddedTokenFinder finder({{.content = "<a>", .id = 1, .special = true},
                                 {.content = "a>b", .id = 2},
                                 {.content = "|", .id = 3, .rstrip = true},
                                 {.content = "\n", .id = 4},
                                 {.content = "cat", .id = 5, .single_word = true},
                                 {.content = "at!", .id = 6}});
  CHECK(finder.find("<a>b", 0, true)->id == 1);
  CHECK(!finder.find("<a>b", 0, false).has_value());
  CHECK(finder.find("xa>b", 0, false)->id == 2);
  CHECK(!finder.find("scat!", 0, true).has_value());
  const auto bar = finder.find("| \n x", 0, true);
  CHECK(bar->end == 4);
  CHECK(bar->content_end == 1);
  const auto line = finder.find("| \n x", bar->content_end, true, {}, bar->end);
  CHECK(line->id == 4);
  CHECK(line->begin == 2);
  const AddedTokenFinder twice({{.content = "x", .id = 1}, {.content = "x", .id = 2}});
  CHECK(twice.find("x", 0, true)->id == 1);  // the first of two that read the same
}

TEST_CASE("pairs merge by rank, then from the left") {
  // a=0 b=1 c=2 ab=3 bc=4 abc=5 aa=6
  const BpeModel model({{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"bc", 4}, {"abc", 5}, {"aa", 6}},
                       {{1, 2, 4}, {0, 1, 3}, {3, 2, 5}, {0, 0, 6}}, {.byte_level = true});
  const auto ids = [&](std::string_view word) {
    std::vector<BpeModel::Piece> pieces;
    model.encode(word, pieces);
    Offsets found;
    for (const auto& piece : pieces) found.push_back(piece.id);
    return found;
  };
  CHECK(ids("abc") == Offsets{0, 4});  // bc is ranked before ab, and a + bc is no merge
  CHECK(ids("abab") == Offsets{3, 3});
  CHECK(ids("aaa") == Offsets{6, 0});
  CHECK(ids("aaaa") == Offsets{6, 6});
  CHECK(ids("x") == Offsets{-1});
  CHECK(ids("").empty());
}

}  // namespace headscope::text_steps_test
