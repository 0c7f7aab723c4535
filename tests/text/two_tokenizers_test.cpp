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
  for (const char* name : {"t5", "marian"}) {
    const Two two{std::string(name)};
    for (const auto& [text, ids] : two.texts["source"].items()) {
      CAPTURE(name);
      CAPTURE(text);
      CHECK(two.source(text) == ids.get<std::vector<std::int32_t>>());
    }
  }
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
