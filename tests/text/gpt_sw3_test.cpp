// GPT-SW3's spiece.model beside transformers (tests/reference/make_gpt_sw3.py).

#include <doctest/doctest.h>

#include <string>

#include "core/text/tokenizer.h"
#include "tests/support/paths.h"
#include "tests/text/cases.h"

namespace headscope::gpt_sw3_test {

using namespace testing;

TEST_CASE("GPT-SW3's texts are prepared and cut as transformers does it, and every byte belongs to a token") {
  const auto tokenizer = load_tokenizer(reference("tokenizers/gpt_sw3"));
  REQUIRE(tokenizer);
  CHECK_FALSE(tokenizer->adds_bos());
  CHECK_FALSE(tokenizer->behind().has_value());
  CHECK(tokenizer->bos() == 2);
  CHECK(tokenizer->eos() == 3);
  int changed = 0;
  for (const nlohmann::json& each : read_cases(reference("tokenizers/gpt_sw3/cases.jsonl"))) {
    const std::string text = from_hex(each.at("utf8"));
    CAPTURE(text);
    const std::vector<Token> tokens = tokenizer->encode(text, {.parse_special = true});
    CHECK(ids_of(tokens) == each.at("ids").get<std::vector<std::int32_t>>());
    changed += tokenizer->decode(ids_of(tokens)) != text;
    if (!tokens.empty()) CHECK(spans_cover(tokens, text));
  }
  CHECK(changed > 4);
}

}  // namespace headscope::gpt_sw3_test
