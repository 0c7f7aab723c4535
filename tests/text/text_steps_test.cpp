// Normalisers and splitters by hand, with the way back to the original bytes.

#include <doctest/doctest.h>

#include "core/text/added_tokens.h"
#include "core/text/bpe.h"
#include "core/text/normalizer.h"
#include "core/text/pre_tokenizer.h"

using namespace headscope;
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

TEST_CASE("lower case and stripping keep their place too") {
  const AlignedText lower = normal(LowercaseStep{}, "AİB");
  CHECK(lower.bytes == "ai\u0307b");
  CHECK(lower.origin == Offsets{0, 1, 2, 3, 3, 4});
  const AlignedText stripped = normal(StripStep{true, false}, " \u3000a ");
  CHECK(stripped.bytes == "a ");
  CHECK(stripped.origin == Offsets{0, 5, 6});
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
