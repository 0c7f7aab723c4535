// What encoder-decoders read: T5's tokenizer.json, and Marian's pieces of each side with one numbering, beside
// transformers' own tokenizers (tests/reference/encoder-decoders/*/texts.json).

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/run/run_request.h"
#include "tests/support/paths.h"

namespace headscope::two_tokenizers_test {

using namespace testing;

namespace {
struct Two {
  Backend backend{1};
  LoadedModel loaded;
  nlohmann::json texts;
  explicit Two(const std::string& name)
      : loaded(load_model(reference("encoder-decoders") / name, backend)),
        texts(nlohmann::json::parse(read_file(reference("encoder-decoders") / name / "texts.json"))) {}

  std::vector<std::int32_t> source(const std::string& text) const {
    RunRequest request;
    request.source = text;
    std::vector<std::int32_t> ids;
    for (const Token& token : tokenize(loaded.encoder(), encoder_request(*loaded.model, request)))
      ids.push_back(token.id);
    return ids;
  }
  std::vector<std::int32_t> target(const std::string& text) const {
    RunRequest request;
    request.text = text;
    std::vector<std::int32_t> ids;
    for (const Token& token : tokenize(loaded, request)) ids.push_back(token.id);
    return ids;
  }
};
}  // namespace

TEST_CASE("a source ends as the tokenizer puts it, and is read as transformers reads it") {
  for (const char* name : {"t5", "marian", "m2m_100"}) {
    const Two two{std::string(name)};
    for (const auto& [text, ids] : two.texts["source"].items()) {
      CAPTURE(name);
      CAPTURE(text);
      CHECK(two.source(text) == ids.get<std::vector<std::int32_t>>());
    }
  }
}

TEST_CASE("a text that begins with the code of its language has no other before it") {
  const Two two("m2m_100");
  const Tokenizer& tokenizer = *two.loaded.tokenizer;
  const auto english = tokenizer.bos();
  REQUIRE(english);
  CHECK(tokenizer.token(*english).label == "eng_Latn");
  const std::vector<std::int32_t> german = two.source("deu_Latn ein hund"), plain = two.source("ein hund");
  CHECK(plain.front() == *english);
  CHECK(german.front() == *english + 1);
  CHECK(std::vector(german.begin() + 1, german.end()) == std::vector(plain.begin() + 1, plain.end()));
  CHECK(german.back() == 2);
  CHECK(two.source(" ein hund").front() == *english);  // a space is none
  // A target, too, where its codes are read.
  RunRequest target;
  target.text = "deu_Latn ein hund";
  target.parse_special = true;
  const std::vector<Token> tokens = tokenize(two.loaded, target);
  CHECK(tokens[0].id == two.loaded.model->config().decoder_start);
  CHECK(tokens[1].id == *english + 1);
  // Who asks for the token in front gets it.
  RunRequest asked;
  asked.source = "deu_Latn ein hund";
  asked.add_bos = true;
  CHECK(tokenize(two.loaded.encoder(), encoder_request(*two.loaded.model, asked)).front().id == *english);
}

TEST_CASE("a target begins with the decoder's first token, and does not end") {
  const Two two("marian");
  CHECK(two.loaded.source_tokenizer != two.loaded.tokenizer);
  for (const auto& [text, ids] : two.texts["target"].items()) {
    if (text.starts_with(">>")) continue;  // a target names no language
    CAPTURE(text);
    std::vector<std::int32_t> expected = ids.get<std::vector<std::int32_t>>();
    expected.pop_back();  // </s>
    expected.insert(expected.begin(), two.loaded.model->config().decoder_start);
    CHECK(two.target(text) == expected);
  }
  const Two t5("t5");
  CHECK(t5.loaded.source_tokenizer == t5.loaded.tokenizer);
  CHECK(t5.target("") == std::vector<std::int32_t>{0});
}

}  // namespace headscope::two_tokenizers_test
