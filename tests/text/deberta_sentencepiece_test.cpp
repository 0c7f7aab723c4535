// DeBERTa-v2's and v3's spm.model, which their published folders have in place of a tokenizer.json.

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/text/sentencepiece_model.h"
#include "core/text/tokenizer.h"
#include "tests/support/paths.h"

namespace headscope::deberta_sentencepiece_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {

fs::path folder_with(const std::string& config) {
  SentencePieceParts parts;
  parts.unigram = parts.joins_spaces = true;
  parts.pieces = {{"[PAD]", 0, SentencePieceParts::control},
                  {"[CLS]", 0, SentencePieceParts::control},
                  {"[SEP]", 0, SentencePieceParts::control},
                  {"[UNK]", 0, SentencePieceParts::unknown}};
  for (const char* piece : {"▁the", "▁cat", "▁", "s", "at"}) parts.pieces.push_back({piece, -2});
  parts.bos = 1, parts.eos = 2;
  const fs::path folder = scratch_dir("deberta-pieces");
  fs::remove(folder / "added_tokens.json");
  write_file_atomically(folder / "spm.model", serialized(parts));
  write_file_atomically(folder / "config.json", R"({"model_type": "deberta-v2"})");
  write_file_atomically(folder / "tokenizer_config.json", config);
  return folder;
}

std::string ids(const Tokenizer& tokenizer, const std::string& text) {
  std::string out;
  for (const Token& token : tokenizer.encode(text, {.parse_special = true}))
    out += (out.empty() ? "" : " ") + std::to_string(token.id);
  return out;
}

}  // namespace

TEST_CASE("spm.model frames a text as DeBERTa's makers do, and has a mask behind its last piece") {
  const fs::path folder = folder_with(R"({"do_lower_case": false, "vocab_type": "spm"})");
  const auto tokenizer = load_tokenizer(folder);
  REQUIRE(tokenizer);
  using Ids = std::vector<std::int32_t>;
  CHECK(tokenizer->bos() == 1);
  CHECK(tokenizer->adds_bos());
  CHECK(tokenizer->behind() == 2);
  CHECK(tokenizer->mask() == 9);
  CHECK(tokenizer->vocab_size() == 10);
  CHECK(ids(*tokenizer, "the cats") == "4 5 7");
  CHECK(ids(*tokenizer, "the  [MASK] sat") == "4 9 6 7 8");
  CHECK(tokenizer->decode(Ids{4, 5, 7}) == "the cats");
  // As added_tokens.json of the published folders says it.
  write_file_atomically(folder / "added_tokens.json", R"({"[MASK]": 12})");
  CHECK(load_tokenizer(folder)->mask() == 12);
  CHECK(load_tokenizer(folder)->vocab_size() == 13);
}

TEST_CASE("spm.model of texts that are to be written small first is refused by that key") {
  CHECK_THROWS_WITH_AS(load_tokenizer(folder_with(R"({"do_lower_case": true})")), doctest::Contains("do_lower_case"),
                       Error);
}

}  // namespace headscope::deberta_sentencepiece_test
