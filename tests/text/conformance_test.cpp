// The published tokenizers of the reference set, on every string of its conformance files.

#include <doctest/doctest.h>

#include <filesystem>

#include "core/text/tokenizer.h"
#include "tests/support/paths.h"
#include "tests/text/cases.h"

namespace headscope::conformance_test {

namespace fs = std::filesystem;
using namespace testing;

namespace {

struct Counts {
  int strings = 0, ids = 0, special = 0, spans = 0, round_trips = 0;
};

/// How many strings there are, and how many of them came out as expected.
Counts compare(const Tokenizer& tokenizer, const fs::path& path) {
  Counts counts;
  for (const auto& expected : read_cases(path)) {
    const std::string text = from_hex(expected["utf8"]);
    const auto tokens = tokenizer.encode(text);
    const auto ids = ids_of(tokens);
    ++counts.strings;
    const bool same = ids == expected["ids"].get<std::vector<std::int32_t>>();
    CHECK_MESSAGE(same, expected["text"].dump(), " became ", nlohmann::json(ids).dump());
    counts.ids += same;
    counts.spans += spans_cover(tokens, text);
    counts.round_trips += tokenizer.decode(ids) == text;
    auto with_special = expected["ids"];
    for (const char* key : {"ids_special", "ids_hf_special"})
      if (expected.contains(key)) with_special = expected[key];
    counts.special +=
        ids_of(tokenizer.encode(text, {.parse_special = true})) == with_special.get<std::vector<std::int32_t>>();
  }
  return counts;
}

void check_gpt2(const Tokenizer& tokenizer, const fs::path& cases) {
  CHECK(tokenizer.vocab_size() == 50257);
  CHECK(tokenizer.describe() == "byte-level BPE, 50257 tokens");
  CHECK(tokenizer.bos() == 50256);
  CHECK(tokenizer.eos() == 50256);
  CHECK(!tokenizer.adds_bos());
  for (const auto& [name, strings] : {std::pair("gpt2_conformance.jsonl", 1358), {"gpt2_upstream_vectors.jsonl", 75}}) {
    CAPTURE(name);
    const Counts counts = compare(tokenizer, cases / name);
    CHECK(counts.strings == strings);
    CHECK(counts.ids == strings);
    CHECK(counts.special == strings);
    CHECK(counts.spans == strings);
    CHECK(counts.round_trips == strings);
  }
  for (const auto& expected : read_cases(cases / "gpt2_decode.jsonl"))
    CHECK(tokenizer.decode(expected["ids"].get<std::vector<std::int32_t>>()) == from_hex(expected["bytes"]));
}

std::string with_replacement_characters(std::string bytes) {
  while (const auto bad = first_invalid_utf8(bytes)) bytes.replace(*bad, 1, "\xEF\xBF\xBD");
  return bytes;
}

void check_stories(const Tokenizer& tokenizer, const fs::path& cases) {
  CHECK(tokenizer.vocab_size() == 512);
  CHECK(tokenizer.bos() == 1);
  CHECK(tokenizer.eos() == 2);
  CHECK(tokenizer.adds_bos());
  const Counts counts = compare(tokenizer, cases / "stories260k_spm.jsonl");
  CHECK(counts.strings == 1358);
  CHECK(counts.ids == 1358);
  CHECK(counts.special == 1358);
  CHECK(counts.spans == 1358);
  CHECK(counts.round_trips == 1357);  // a "▁" in the text reads back as a space: the token is the same
  for (const auto& expected : read_cases(cases / "stories260k_decode.jsonl"))
    CHECK(with_replacement_characters(tokenizer.decode(expected["ids"].get<std::vector<std::int32_t>>())) ==
          expected["text"].get<std::string>());
}

}  // namespace

TEST_CASE("GPT-2's tokenizer.json gives the published ids for every conformance string") {
  HEADSCOPE_NEEDS_SHARED(folder, "models/gpt2-tokenizer");
  check_gpt2(*load_tokenizer(*folder), *shared_reference("tokenizer"));
}

TEST_CASE("GPT-2's vocab.json and merges.txt give the published ids for every conformance string") {
  HEADSCOPE_NEEDS_SHARED(folder, "models/gpt2-bpe-d64");
  check_gpt2(*load_tokenizer(*folder), *shared_reference("tokenizer"));
}

TEST_CASE("a Llama tokenizer.json gives the published ids for every conformance string") {
  HEADSCOPE_NEEDS_SHARED(folder, "models/stories260k");
  const auto tokenizer = load_tokenizer(*folder);
  CHECK(tokenizer->describe() == "BPE with byte fallback, 512 tokens");
  check_stories(*tokenizer, *shared_reference("tokenizer"));
}

TEST_CASE("the same model's tokenizer.model gives the same ids") {
  HEADSCOPE_NEEDS_SHARED(folder, "models/stories260k");
  const fs::path alone = scratch_dir("stories-model");
  for (const char* name : {"tokenizer.model", "tokenizer_config.json", "config.json"})
    fs::copy_file(*folder / name, alone / name);
  const auto tokenizer = load_tokenizer(alone);
  CHECK(tokenizer->describe() == "SentencePiece, 512 tokens");
  check_stories(*tokenizer, *shared_reference("tokenizer"));
}

TEST_CASE("the reference models with tiny vocabularies have tokenizers") {
  HEADSCOPE_NEEDS_SHARED(folder, "models");
  const auto letters = load_tokenizer(*folder / "gpt-nano-sort");
  CHECK(letters->vocab_size() == 3);
  CHECK(ids_of(letters->encode("CBABBC")) == std::vector<std::int32_t>{2, 1, 0, 1, 1, 2});
  CHECK(!letters->bos().has_value());
  const auto bytes = load_tokenizer(*folder / "gpt2-byte-d96");
  CHECK(bytes->vocab_size() == 257);
  CHECK(bytes->bos() == 256);
  CHECK(bytes->encode("aé\n").size() == 4);
}

}  // namespace headscope::conformance_test
