// Unigram, WordPiece, compiled tables of characters and single characters' rules by hand.

#include <doctest/doctest.h>

#include <string>

#include "core/base/error.h"
#include "core/text/normalizer.h"
#include "core/text/pre_tokenizer.h"
#include "core/text/unigram.h"
#include "core/text/word_piece.h"

namespace headscope::word_models_test {

using Ids = std::vector<std::int32_t>;
using Strings = std::vector<std::string>;

namespace {

struct Cut {
  Ids ids;
  Strings parts;
};

Cut cut(const WordModel& model, std::string_view word) {
  std::vector<WordModel::Piece> pieces;
  pieces.clear();
  model.encode(word, pieces);
  Cut found;
  std::size_t at = 0;
  for (const auto& piece : pieces) {
    CHECK(piece.begin == at);
    at = piece.end;
    found.ids.push_back(piece.id);
    found.parts.emplace_back(word.substr(piece.begin, piece.end - piece.begin));
  }
  CHECK(at == word.size());
  return found;
}

std::string normal(NormalizerStep step, std::string_view text) {
  return normalize({std::move(step)}, AlignedText::of(text, 0)).bytes;
}

std::string bytes_of(std::initializer_list<std::uint32_t> units) {
  std::string bytes;
  for (const std::uint32_t unit : units)
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(unit >> shift & 0xFF);
  return bytes;
}

/// "a" becomes "xy" and "é" (C3 A9) nothing: a double array whose root's offset is 0, so that a node stands at its
/// byte.
std::string small_table() {
  std::string units;
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t unit = 0;
    if (i == 'a') unit = 1u << 10 | 1u << 8 | 'a';    // a leaf at 'a' ^ 1
    if (i == ('a' ^ 1)) unit = 1u << 31 | 0;          // whose value is 0
    if (i == 0xC3) unit = 2u << 10 | 0xC3;            // on to (C3 ^ 2) ^ A9 = 68
    if (i == 0x68) unit = 3u << 10 | 1u << 8 | 0xA9;  // a leaf at 68 ^ 3
    if (i == 0x6B) unit = 1u << 31 | 3;               // whose value is 3
    units += bytes_of({unit});
  }
  return bytes_of({1024}) + units + std::string("xy\0\0", 4);
}

}  // namespace

TEST_CASE("Unigram takes the pieces whose scores sum up highest") {
  // <unk>, a, b, ab, c, abc: "abc" as ab + c is −2 − 3 = −5, as a + b + c −1 − 1.5 − 3 = −5.5, whole −6.
  const UnigramModel model({{"<unk>", 0}, {"a", -1}, {"b", -1.5}, {"ab", -2}, {"c", -3}, {"abc", -6}}, {.unk = 0});
  CHECK(cut(model, "abc").ids == Ids{3, 4});
  CHECK(cut(model, "aab").ids == Ids{1, 3});
  CHECK(cut(model, "").ids.empty());
  // What is unknown costs −6 − 10 and joins its neighbours, but not through a known letter.
  const Cut unknown = cut(model, "é灯aé");
  CHECK(unknown.ids == Ids{0, 1, 0});
  CHECK(unknown.parts == Strings{"é灯", "a", "é"});
  CHECK(model.longest_piece() == 0);
  // With a cheap whole word the sum changes its mind: −4.9 is above −5.
  const UnigramModel whole({{"<unk>", 0}, {"a", -1}, {"b", -1.5}, {"ab", -2}, {"c", -3}, {"abc", -4.9}}, {.unk = 0});
  CHECK(cut(whole, "abc").ids == Ids{5});
  CHECK(cut(UnigramModel({{"a", -1}}, {}), "ab").ids == Ids{0, -1});
}

TEST_CASE("Unigram writes unknown characters as bytes, unless one of those is missing") {
  UnigramModel::Options options{.unk = 0};
  options.byte_fallback.emplace().fill(-1);
  (*options.byte_fallback)[0xC3] = 7;
  (*options.byte_fallback)[0xA9] = 8;
  const UnigramModel model({{"<unk>", 0}, {"a", -1}}, options);
  CHECK(cut(model, "aé").ids == Ids{1, 7, 8});
  CHECK(cut(model, "aè").ids == Ids{1, 0});
  CHECK(cut(model, "é灯").ids == Ids{0});    // one unknown run, of which not all bytes are there
  CHECK(cut(model, "<unk>").ids == Ids{0});  // a piece that is written out is no bytes
}

TEST_CASE("WordPiece takes the longest piece from the left, or gives the whole word up") {
  const std::vector<std::pair<std::string, std::int32_t>> words{{"[UNK]", 0}, {"un", 1},     {"una", 2},
                                                                {"##aff", 3}, {"##able", 4}, {"##ff", 5}};
  const WordPieceModel model(words, {.unk = 0});
  const Cut found = cut(model, "unaffable");
  CHECK(found.ids == Ids{2, 5, 4});  // "una" is longer than "un"
  CHECK(found.parts == Strings{"una", "ff", "able"});
  CHECK(cut(model, "unaffab").ids == Ids{0});
  CHECK(cut(model, "##aff").ids == Ids{3});  // spelled out, it is a word too
  CHECK(cut(model, "able").ids == Ids{0});
  const WordPieceModel few(words, {.unk = 0, .most_characters = 8});
  CHECK(cut(few, "unaffabl").ids == Ids{0});
  CHECK(cut(few, "unaffable").ids == Ids{0});
  CHECK(cut(few, "unaff").ids == Ids{2, 5});
  CHECK(cut(WordPieceModel(words, {}), "able").ids == Ids{-1});
  const WordPieceModel whole(words, {.unk = 0, .whole_words = true});
  CHECK(cut(whole, "una").ids == Ids{2});
  CHECK(cut(whole, "unaff").ids == Ids{0});
}

TEST_CASE("a compiled table replaces short graphemes by their shortest beginning, longer ones by character") {
  const auto table = std::make_shared<PrecompiledCharsmap>(small_table(), "test");
  CHECK(table->replacement("a") == "xy");
  CHECK(table->replacement("abc") == "xy");
  CHECK(table->replacement("é") == "");
  CHECK(!table->replacement("b").has_value());
  CHECK(!table->replacement("").has_value());
  CHECK(!table->replacement("\xC3").has_value());
  const PrecompiledStep step{table};
  CHECK(normal(step, "baéc") == "bxyc");
  CHECK(normal(step, "a\u0301b") == "xyb");                                // three bytes: the mark goes with its letter
  CHECK(normal(step, "a\u0301\u0301\u0301b") == "xy\u0301\u0301\u0301b");  // seven: it stays
  const AlignedText text = normalize({step}, AlignedText::of("baéc", 0));
  CHECK(text.origin == Ids{0, 1, 2, 4, 5});
}

TEST_CASE("a compiled table that is cut off, or that points nowhere, is refused or finds nothing") {
  CHECK_THROWS_WITH_AS(PrecompiledCharsmap("abc", "f: key"), doctest::Contains("f: key: expected a table"), Error);
  CHECK_THROWS_WITH_AS(PrecompiledCharsmap(bytes_of({8, 0}), "f: key"),
                       doctest::Contains("within the table's 4 bytes, found 8 bytes"), Error);
  CHECK_THROWS_AS(PrecompiledCharsmap(bytes_of({0}), "f: key"), Error);
  CHECK_THROWS_AS(PrecompiledCharsmap(bytes_of({3, 0}), "f: key"), Error);
  CHECK_THROWS_WITH_AS(PrecompiledCharsmap(bytes_of({4, 0}) + "\xFF", "f: key"), doctest::Contains("valid UTF-8"),
                       Error);
  // A root that leads far outside; a leaf that stands outside; a value behind the replacements.
  CHECK(!PrecompiledCharsmap(bytes_of({4, 0x3FFFFFu << 10}), "f").replacement("a").has_value());
  std::string far = small_table();
  far.replace(4 + 4 * 'a', 4, bytes_of({0x1FFFFFu << 10 | 1u << 8 | 'a'}));
  CHECK(!PrecompiledCharsmap(far, "f").replacement("a").has_value());
  far.replace(4 + 4 * 'a', 4, bytes_of({1u << 10 | 1u << 8 | 'a'}));
  far.replace(4 + 4 * ('a' ^ 1), 4, bytes_of({4}));
  CHECK(!PrecompiledCharsmap(far, "f").replacement("a").has_value());
  CHECK(bytes_from_base64("AAEC/w==", "f") == std::string("\0\1\2\xFF", 4));
  CHECK(bytes_from_base64("", "f").empty());
  CHECK_THROWS_WITH_AS(bytes_from_base64("AA*C", "f: key"), "f: key: expected Base64, found '*' at offset 2", Error);
}

TEST_CASE("rules of single characters") {
  CHECK(normal(CharacterStep{without_marks}, "e\u0301\u0903x") == "ex");
  CHECK(normal(CharacterStep{without_nonspacing_marks}, "e\u0301\u0903x") == "e\u0903x");
  CHECK(normal(CharacterStep{clean_text}, std::string_view("a\0b\u200d\ufffdc\td\u3000e f\u0378", 21)) ==
        "abc d e f\u0378");  // a number that is no character stays
  CHECK(normal(CharacterStep{ideographs_apart}, "a灯b\u3042") == "a 灯 b\u3042");
  CHECK(normal(CharacterStep{nmt}, "a\x01\u200b▁b\nc\u00a0") == "a  b c\u00a0");
}

TEST_CASE("bytes written as characters keep their place, and later steps see those") {
  const Words words = split_into_words({ByteAlphabetStep{}}, AlignedText::of(" é", 0));
  CHECK(words.text.bytes == "ĠÃ©");
  CHECK(words.text.origin == Ids{0, 0 + 1, 1, 2, 2, 3, 3});
  REQUIRE(words.ranges.size() == 1);
  CHECK(words.ranges[0].end == 6);
  // The second byte of "ò" is B2, in the alphabet "²": a digit to a rule that comes after ByteLevel.
  const SplitStep digits{Pattern::regex(R"(\p{N})", "test"), SplitStep::Behavior::isolated, false};
  CHECK(split_into_words({ByteAlphabetStep{}, digits}, AlignedText::of("ò", 0)).ranges.size() == 2);
  CHECK(split_into_words({digits}, AlignedText::of("ò", 0)).ranges.size() == 1);
}

TEST_CASE("words of a million letters can be stopped") {
  std::stop_source stop;
  stop.request_stop();
  const std::string word(1'000'000, 'a');
  std::vector<WordModel::Piece> pieces;
  CHECK_THROWS_AS(UnigramModel({{"a", -1}}, {}).encode(word, pieces, stop.get_token()), Cancelled);
  const WordPieceModel model({{"a", 0}, {"##a", 1}}, {.most_characters = word.size()});
  CHECK_THROWS_AS(model.encode(word, pieces, stop.get_token()), Cancelled);
  pieces.clear();
  model.encode(word, pieces);
  CHECK(pieces.size() == word.size());
}

}  // namespace headscope::word_models_test
