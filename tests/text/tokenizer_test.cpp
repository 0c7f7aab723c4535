// Every form of tokenizer file, on the small tokenizers that tests/reference/make_tokenizers.py writes.

#include <doctest/doctest.h>

#include <string_view>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/text/tokenizer.h"
#include "tests/support/paths.h"
#include "tests/text/cases.h"

namespace headscope::tokenizer_test {

using namespace testing;
using Ids = std::vector<std::int32_t>;

namespace {

std::shared_ptr<const Tokenizer> fixture(const std::string& name) {
  return load_tokenizer(reference("tokenizers/" + name));
}

std::string joined(const std::vector<Token>& tokens) {
  std::string bytes;
  for (const Token& token : tokens) bytes += token.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("every fixture gives the ids and spans of the independent definition") {
  for (const char* name : {"gpt2", "gpt2-json", "llama3", "smol", "llama2", "sentencepiece", "metaspace"}) {
    CAPTURE(name);
    const auto tokenizer = fixture(name);
    const auto cases = read_cases(reference("tokenizers/" + std::string(name) + "/cases.jsonl"));
    CHECK(cases.size() == 107);
    for (const auto& expected : cases) {
      const std::string text = from_hex(expected["utf8"]);
      CAPTURE(text);
      const auto tokens = tokenizer->encode(text);
      CHECK(ids_of(tokens) == expected["ids"].get<Ids>());
      CHECK(spans_cover(tokens, text));
      if (expected.contains("ends")) {
        Ids ends;
        for (const Token& token : tokens) ends.push_back(token.end);
        CHECK(ends == expected["ends"].get<Ids>());
      }
      if (name != std::string("metaspace")) {
        const auto with_special = expected.value("ids_special", expected["ids"]);
        CHECK(ids_of(tokenizer->encode(text, {.parse_special = true})) == with_special.get<Ids>());
      }
    }
  }
}

TEST_CASE("the bytes of the tokens put together are the text") {
  for (const char* name : {"gpt2", "llama3"})
    for (const auto& expected : read_cases(reference("tokenizers/gpt2/cases.jsonl"))) {
      const std::string text = from_hex(expected["utf8"]);
      const auto tokenizer = fixture(name);
      const auto tokens = tokenizer->encode(text);
      CHECK(joined(tokens) == text);
      CHECK(tokenizer->decode(ids_of(tokens)) == text);
      for (const Token& token : tokens)
        CHECK(token.bytes ==
              text.substr(static_cast<std::size_t>(token.begin), static_cast<std::size_t>(token.end - token.begin)));
    }
  for (const char* name : {"llama2", "sentencepiece"}) {
    const auto tokenizer = fixture(name);
    for (const auto& expected : read_cases(reference("tokenizers/llama2/cases.jsonl"))) {
      const std::string text = from_hex(expected["utf8"]);
      if (text.empty() || text.find("▁") != std::string::npos) continue;  // "▁" and a space are one token
      const auto tokens = tokenizer->encode(text);
      CHECK(joined(tokens) == " " + text);  // the space that stands in front of every text
      CHECK(tokenizer->decode(ids_of(tokens)) == text);
    }
  }
}

TEST_CASE("tokens that share a character have nested spans, one byte each") {
  for (const char* name : {"gpt2", "llama2", "sentencepiece"}) {
    CAPTURE(name);
    const auto tokens = fixture(name)->encode("a🙂b");
    const std::size_t dummy = tokens.size() - 6;  // Llama's leading space; the letters may have joined it
    CHECK(tokens.size() >= 6);
    for (std::size_t i = 0; i < 4; ++i) {
      const Token& token = tokens[dummy + 1 + i];
      CHECK(token.begin == static_cast<int>(1 + i));
      CHECK(token.end == static_cast<int>(2 + i));
      CHECK(token.bytes == std::string(1, "🙂"[i]));
    }
    CHECK(tokens[dummy + 1].label == "<F0>");
    CHECK(tokens[dummy + 2].label == "<9F>");
  }
}

TEST_CASE("Llama's leading space is a token of its own with an empty span, or part of the first word") {
  for (const char* name : {"llama2", "sentencepiece"}) {
    CAPTURE(name);
    const auto alone = fixture(name)->encode("Q");
    REQUIRE(alone.size() >= 2);
    CHECK(alone[0].bytes == " ");
    CHECK(alone[0].begin == 0);
    CHECK(alone[0].end == 0);
    CHECK(alone[0].label == "␣");
    const auto word = fixture(name)->encode("the");
    REQUIRE(word.size() == 1);
    CHECK(word[0].bytes == " the");
    CHECK(word[0].begin == 0);
    CHECK(word[0].end == 3);
  }
}

TEST_CASE("a special token in the text has its span, its name as label, and no bytes") {
  const auto tokenizer = fixture("gpt2");
  const auto tokens = tokenizer->encode("a<|endoftext|>b", {.parse_special = true});
  REQUIRE(tokens.size() == 3);
  CHECK(tokens[1].id == tokenizer->eos());
  CHECK(tokens[1].begin == 1);
  CHECK(tokens[1].end == 14);
  CHECK(tokens[1].bytes.empty());
  CHECK(tokens[1].label == "<|endoftext|>");
  CHECK(tokenizer->decode(ids_of(tokens)) == "ab");
  CHECK(tokenizer->encode("a<|endoftext|>b").size() > 3);
}

TEST_CASE("a token by id has no span, and an id outside the vocabulary is an error") {
  const auto tokenizer = fixture("gpt2");
  const Token space_the = tokenizer->token(ids_of(tokenizer->encode(" the"))[0]);
  CHECK(space_the.bytes == " the");
  CHECK(space_the.label == "␣the");
  CHECK(space_the.begin == -1);
  CHECK(space_the.end == -1);
  CHECK_THROWS_WITH_AS(tokenizer->token(477), "token id: expected a number from 0 to 476, found 477", Error);
  CHECK_THROWS_AS(tokenizer->token(-1), Error);
  CHECK_THROWS_AS(tokenizer->decode(Ids{3, 477}), Error);
}

TEST_CASE("begin and end tokens come from the tokenizer's own rules, the names, or the numbers") {
  const auto by_map = fixture("gpt2");  // special_tokens_map.json, as a string and as an object
  CHECK(by_map->bos() == 476);
  CHECK(by_map->eos() == 476);
  CHECK(!by_map->adds_bos());
  const auto by_config = fixture("gpt2-json");  // config.json, one number and a list
  CHECK(by_config->bos() == 476);
  CHECK(by_config->eos() == 476);
  const auto by_template = fixture("llama3");  // post_processor, and a name for the end
  CHECK(by_template->token(*by_template->bos()).label == "<|begin_of_text|>");
  CHECK(by_template->token(*by_template->eos()).label == "<|endoftext|>");
  CHECK(by_template->adds_bos());
  const auto forbidden = fixture("smol");  // add_bos_token: false
  CHECK(forbidden->bos() == 0);
  CHECK(!forbidden->adds_bos());
  for (const char* name : {"llama2", "sentencepiece"}) {
    CHECK(fixture(name)->bos() == 1);
    CHECK(fixture(name)->eos() == 2);
    CHECK(fixture(name)->adds_bos());
  }
  CHECK(!fixture("metaspace")->bos().has_value());
  CHECK(!fixture("letters")->eos().has_value());
}

TEST_CASE("a tokenizer says what it is") {
  CHECK(fixture("gpt2")->describe() == "byte-level BPE, 477 tokens");
  CHECK(fixture("llama2")->describe().starts_with("BPE with byte fallback, "));
  CHECK(fixture("sentencepiece")->describe().starts_with("SentencePiece, "));
  CHECK(fixture("metaspace")->describe().starts_with("character-level BPE, "));
  CHECK(fixture("letters")->describe() == "single characters, 5 tokens");
}

TEST_CASE("a vocabulary without merges is one of single characters") {
  const auto tokenizer = fixture("letters");
  const auto tokens = tokenizer->encode("ab é灯");
  CHECK(ids_of(tokens) == Ids{1, 0, 2, 3, 4});
  CHECK(tokens[4].begin == 5);
  CHECK(tokens[4].end == 8);
  CHECK(tokenizer->decode(ids_of(tokens)) == "ab é灯");
  try {
    tokenizer->encode("abc");
    FAIL("an unknown letter must be an error");
  } catch (const Error& error) {
    CHECK(error.where == "text");
    CHECK(error.found == "'c' at byte 2");
  }
}

TEST_CASE("text that is not UTF-8 is an error that names the byte") {
  for (const char* name : {"gpt2", "sentencepiece", "letters"})
    CHECK_THROWS_WITH_AS(
        fixture(name)->encode("ab\xC3\x28"),
        "text: expected valid UTF-8, found byte 0xC3 at offset 2 of 4\n  hint: convert the text to UTF-8, or give "
        "token ids instead",
        Error);
}

TEST_CASE("a word of a hundred thousand letters is no different from a short one") {
  // Random letters keep the queue of merges busy; one letter repeated makes it merge level by level.
  std::string random, same(100000, 'a');
  Random source(1);
  for (int i = 0; i < 100000; ++i) random += static_cast<char>('a' + source.below(26));
  for (const char* name : {"gpt2", "llama3", "llama2", "sentencepiece"}) {
    CAPTURE(name);
    const auto tokenizer = fixture(name);
    for (const std::string& word : {random, same}) {
      const auto tokens = tokenizer->encode(word);
      const bool same_text = tokenizer->decode(ids_of(tokens)) == word;
      CHECK(spans_cover(tokens, word));
      CHECK(same_text);
    }
  }
}

TEST_CASE("a text that must have too many tokens is refused from its length, before it is read") {
  for (const char* name : {"gpt2", "gpt2-json", "llama3", "smol", "llama2", "sentencepiece", "metaspace"}) {
    CAPTURE(name);
    const auto tokenizer = fixture(name);
    std::string text;
    while (text.size() < 30'000) text += "she sold pies and 12 cakes. ";
    const std::size_t all = tokenizer->encode(text).size();
    // What it may have is what it has: nothing changes. A bound is never above the truth.
    CHECK(tokenizer->encode(text, {.most_tokens = all}).size() == all);
    try {
      tokenizer->encode(text, {.most_tokens = 10});
      // No bound can be told: one lacks letters, the other makes one token of all unknown characters in a row.
      CHECK((std::string(name) == "sentencepiece" || std::string(name) == "metaspace"));
    } catch (const TooManyTokens& refused) {
      CHECK(refused.at_least > 10);
      CHECK(refused.at_least <= all);
      CHECK(std::string(refused.what()).find("expected at most 10 tokens, found at least") != std::string::npos);
    }
    CHECK(tokenizer->encode("pies", {.most_tokens = 100}).size() <= 4);
  }
  // Forty megabytes: what is said of them is what their length says, if each token were the longest that there is.
  const auto tokenizer = fixture("gpt2");
  const std::size_t longest = std::string_view("<|endoftext|>").size();
  const std::string huge(40'000'000, 'x');
  try {
    tokenizer->encode(huge, {.most_tokens = 1024});
    FAIL("read to its end");
  } catch (const TooManyTokens& refused) {
    CHECK(refused.at_least == (huge.size() + longest - 1) / longest);
  }
}

TEST_CASE("a requested stop ends every tokenizer's reading of a text") {
  std::stop_source stop;
  stop.request_stop();
  for (const char* name : {"gpt2", "gpt2-json", "llama3", "smol", "llama2", "sentencepiece", "metaspace"}) {
    CAPTURE(name);
    std::string words, one(200'000, 'a');
    while (words.size() < 50'000) words += "words and words ";
    for (const std::string& text : {words, one})
      CHECK_THROWS_AS(fixture(name)->encode(text, {.stop = stop.get_token()}), Cancelled);
  }
}

TEST_CASE("SentencePiece, which cannot be stopped, is given no text that it reads for long") {
  const auto tokenizer = fixture("sentencepiece");
  const std::string longest(std::size_t{1} << 20, 'a');
  CHECK(tokenizer->encode(longest).size() > 1000);
  CHECK_THROWS_WITH_AS(
      tokenizer->encode(longest + "a"),
      doctest::Contains("text: expected at most 1048576 bytes in a row for SentencePiece, whose reading "
                        "cannot be stopped, found 1048577, too long"),
      Error);
}

}  // namespace headscope::tokenizer_test
