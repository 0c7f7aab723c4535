// tokenizer.json with the rules of each published family, as tests/reference/make_tokenizer_families.py writes them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/text/tokenizer.h"
#include "tests/support/paths.h"
#include "tests/text/cases.h"

namespace headscope::tokenizer_families_test {

namespace fs = std::filesystem;
using namespace testing;
using Ids = std::vector<std::int32_t>;

namespace {

struct Counts {
  int strings = 0, ids = 0, special = 0, spans = 0, decoded = 0;
};

Counts compare(const fs::path& folder) {
  const auto tokenizer = load_tokenizer(folder);
  Counts counts;
  for (const auto& expected : read_cases(folder / "cases.jsonl")) {
    const std::string text = from_hex(expected["utf8"]);
    ++counts.strings;
    const auto tokens = tokenizer->encode(text);
    const Ids ids = expected["ids"], with_special = expected.value("ids_special", ids);
    const bool same = ids_of(tokens) == ids;
    CHECK_MESSAGE(same, visible_label(text), " became ", nlohmann::json(ids_of(tokens)).dump(), ", not ",
                  nlohmann::json(ids).dump());
    counts.ids += same;
    const bool same_special = ids_of(tokenizer->encode(text, {.parse_special = true})) == with_special;
    CHECK_MESSAGE(same_special, visible_label(text), " with special tokens");
    counts.special += same_special;
    const bool covered = spans_cover(tokens, text);
    CHECK_MESSAGE(covered, visible_label(text), ": spans");
    counts.spans += covered;
    const std::string meant = expected.contains("decoded") ? from_hex(expected["decoded"]) : text;
    const std::string found = tokenizer->decode(ids);
    CHECK_MESSAGE(found == meant, visible_label(text), " decoded to ", visible_label(found), ", not ",
                  visible_label(meant));
    counts.decoded += found == meant;
  }
  return counts;
}

}  // namespace

TEST_CASE("BERT's vocab.txt alone gives the same ids, and its words may keep their case") {
  const fs::path from = reference("tokenizer-families") / "bert", folder = scratch_dir("vocab-txt");
  const nlohmann::json file = nlohmann::json::parse(read_file(from / "tokenizer.json"));
  std::vector<std::string> lines(file["model"]["vocab"].size());
  for (const auto& [piece, id] : file["model"]["vocab"].items()) lines[id.get<std::size_t>()] = piece;
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  write_file_atomically(folder / "vocab.txt", text);
  fs::copy_file(from / "cases.jsonl", folder / "cases.jsonl");
  const Counts counts = compare(folder);
  CHECK(counts.strings > 50);
  CHECK(counts.ids == counts.strings);
  const auto uncased = load_tokenizer(folder), json = load_tokenizer(from);
  CHECK(uncased->behind() == json->behind());
  CHECK(uncased->bos() == json->bos());
  CHECK(uncased->adds_bos());
  REQUIRE(uncased->mask());
  CHECK(lines[static_cast<std::size_t>(*uncased->mask())] == "[MASK]");
  // An A of its own is no piece of a vocabulary of small letters.
  write_file_atomically(folder / "tokenizer_config.json", R"({"do_lower_case": false})");
  const auto cased = load_tokenizer(folder);
  CHECK(ids_of(cased->encode("a")) == ids_of(uncased->encode("A")));
  CHECK(ids_of(cased->encode("A")) != ids_of(uncased->encode("A")));
  write_file_atomically(folder / "vocab.txt", "[UNK]\n[CLS]\na\n");
  CHECK_THROWS_WITH_AS(load_tokenizer(folder), doctest::Contains("a line [SEP]"), Error);
  write_file_atomically(folder / "vocab.txt", "[UNK]\n\xff\n");
  CHECK_THROWS_WITH_AS(load_tokenizer(folder), doctest::Contains("valid UTF-8"), Error);
}

TEST_CASE("ESM's vocab.txt: every residue is a token, between <cls> and <eos>") {
  const fs::path folder = scratch_dir("esm-vocab-txt");
  write_file_atomically(folder / "vocab.txt", "<cls>\n<pad>\n<eos>\n<unk>\nL\nA\nG\nV\n.\n-\n<null_1>\n<mask>");
  const auto tokenizer = load_tokenizer(folder);
  using Ids = std::vector<std::int32_t>;
  // As transformers' EsmTokenizer has it.
  CHECK(ids_of(tokenizer->encode("LAGV")) == Ids{4, 5, 6, 7});
  CHECK(ids_of(tokenizer->encode("L A\nGV.-")) == Ids{4, 5, 6, 7, 8, 9});
  CHECK(ids_of(tokenizer->encode("L<mask>GZZ9A J")) == Ids{4, 11, 6, 3, 5, 3});
  CHECK(ids_of(tokenizer->encode("lag")) == Ids{3});
  CHECK(tokenizer->bos() == 0);
  CHECK(tokenizer->behind() == 2);
  CHECK(tokenizer->adds_bos());
  CHECK(tokenizer->mask() == 11);
  CHECK(tokenizer->vocab_size() == 12);
}

TEST_CASE("RoBERTa's vocab.json and merges.txt alone give the same ids, between the same tokens") {
  const fs::path from = reference("tokenizer-families") / "roberta", folder = scratch_dir("roberta-files");
  const nlohmann::json file = nlohmann::json::parse(read_file(from / "tokenizer.json"));
  nlohmann::json vocab = file["model"]["vocab"];
  std::string merges = "#version: 0.2\n";
  for (const auto& pair : file["model"]["merges"])
    merges +=
        (pair.is_array() ? pair[0].get<std::string>() + " " + pair[1].get<std::string>() : pair.get<std::string>()) +
        "\n";
  for (const auto& added : file["added_tokens"]) vocab[added["content"].get<std::string>()] = added["id"];
  write_file_atomically(folder / "vocab.json", vocab.dump());
  write_file_atomically(folder / "merges.txt", merges);
  fs::copy_file(from / "cases.jsonl", folder / "cases.jsonl");
  const Counts counts = compare(folder);
  CHECK(counts.strings > 50);
  CHECK(counts.ids == counts.strings);
  const auto files = load_tokenizer(folder), json = load_tokenizer(from);
  CHECK(files->adds_bos());
  CHECK(files->bos() == json->bos());
  CHECK(files->behind() == json->behind());
  CHECK(files->mask() == json->mask());
  // OPT has <s> and </s> too, and no mask: nothing of it stands around a text.
  vocab.erase("<mask>");
  write_file_atomically(folder / "vocab.json", vocab.dump());
  CHECK_FALSE(load_tokenizer(folder)->behind());
}

TEST_CASE("every family's tokenizer.json gives the ids of the tokenizers package, and the text again") {
  const char* const more = std::getenv("HEADSCOPE_TOKENIZER_CASES");
  const fs::path folder = more ? fs::path(more) : reference("tokenizer-families");
  int families = 0;
  for (const auto& family : fs::directory_iterator(folder)) {
    const std::string name = family.path().filename().string();
    CAPTURE(name);
    const Counts counts = compare(family.path());
    CHECK(counts.strings > 80);
    CHECK(counts.ids == counts.strings);
    CHECK(counts.special == counts.strings);
    CHECK(counts.spans == counts.strings);
    CHECK(counts.decoded == counts.strings);
    ++families;
  }
  CHECK(families == 25);
}

TEST_CASE("whole words without a decoder have a space between any two, as in the tokenizers package") {
  const fs::path folder = scratch_dir("whole-words");
  const auto write = [&](const char* pre_tokenizer) {
    write_file_atomically(folder / "tokenizer.json",
                          std::string(R"({"added_tokens": [], "decoder": null, "model": {"type": "WordLevel",)") +
                              R"("vocab": {"<unk>": 0, "the": 1, "cat": 2, ".": 3}, "unk_token": "<unk>"},)" +
                              R"("pre_tokenizer": )" + pre_tokenizer + "}");
    return load_tokenizer(folder);
  };
  const auto words = write(R"({"type": "Whitespace"})");
  CHECK(ids_of(words->encode("the cat.")) == Ids{1, 2, 3});
  CHECK(words->decode(Ids{1, 2, 3}) == "the cat .");
  CHECK(words->decode(Ids{2}) == "cat");
  // What keeps its spaces is put together as it is.
  const auto parts =
      write(R"({"type": "Split", "pattern": {"String": "the"}, "behavior": "Isolated", "invert": false})");
  CHECK(parts->decode(Ids{1, 2}) == "thecat");
}

TEST_CASE("added tokens: white space that two of them take is read as by the tokenizers package; none is nothing") {
  const fs::path folder = scratch_dir("added-tokens");
  const auto write = [&](const char* normalizer, const char* first) {
    write_file_atomically(
        folder / "tokenizer.json",
        std::string(R"({"added_tokens": [{"id": 3, "content": ")") + first +
            R"(", "rstrip": true, "lstrip": true, "single_word": false, "normalized": true, "special": false},)" +
            R"({"id": 4, "content": "  ", "rstrip": false, "lstrip": false, "single_word": false, "normalized": true,)" +
            R"("special": false}], "decoder": null, "model": {"type": "BPE", "vocab": {" ": 0, "x": 1, "m": 2},)" +
            R"("merges": []}, "normalizer": )" + normalizer + "}");
    return load_tokenizer(folder);
  };
  const auto tokens = write("null", "|")->encode("x |   m");
  CHECK(ids_of(tokens) == Ids{1, 3, 4, 0, 2});
  CHECK(spans_cover(tokens, "x |   m"));
  const std::vector<std::pair<int, int>> spans{{0, 1}, {1, 6}, {6, 6}, {6, 6}, {6, 7}};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    CHECK(tokens[i].begin == spans[i].first);
    CHECK(tokens[i].end == spans[i].second);
  }
  CHECK_THROWS_WITH_AS(write(R"({"type": "Strip", "strip_left": true, "strip_right": true})", "|"),
                       doctest::Contains("expected tokens of which the normalizer leaves something"), Error);
}

}  // namespace headscope::tokenizer_families_test
