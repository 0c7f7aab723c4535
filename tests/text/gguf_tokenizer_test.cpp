// Tokenizers in GGUF keys and in llama2.c's tokenizer.bin read every string as the files they were made from.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/text/gguf_tokenizer.h"
#include "tests/support/paths.h"
#include "tests/text/cases.h"

namespace headscope::gguf_tokenizer_test {

using namespace testing;

namespace {

void check_alike(const Tokenizer& found, const Tokenizer& expected, const std::string& cases,
                 bool ascii_alone = false) {
  CHECK(found.vocab_size() == expected.vocab_size());
  CHECK(found.bos() == expected.bos());
  CHECK(found.eos() == expected.eos());
  CHECK(found.adds_bos() == expected.adds_bos());
  for (const auto& each : read_cases(reference("tokenizers/" + cases + "/cases.jsonl"))) {
    const std::string text = from_hex(each["utf8"]);
    CAPTURE(text);
    if (ascii_alone && std::ranges::any_of(text, [](char c) { return c < 0; })) continue;
    for (const bool special : {false, true}) {
      const auto a = found.encode(text, {.parse_special = special}),
                 b = expected.encode(text, {.parse_special = special});
      CHECK(ids_of(a) == ids_of(b));
      CHECK(spans_cover(a, text));
      CHECK(found.decode(ids_of(a)) == expected.decode(ids_of(b)));
    }
  }
  for (int id = 0; id < found.vocab_size(); ++id) CHECK(found.token(id).bytes == expected.token(id).bytes);
}

}  // namespace

TEST_CASE("GGUF's byte-level BPE reads as vocab.json and merges.txt do") {
  check_alike(*load_tokenizer(reference("formats/gpt2-tokenizer.gguf")), *load_tokenizer(reference("tokenizers/gpt2")),
              "gpt2");
}

TEST_CASE("GGUF's names for rules of cutting words mean the patterns of the models' tokenizer.json") {
  check_alike(*load_tokenizer(reference("formats/llama3-tokenizer.gguf")),
              *load_tokenizer(reference("tokenizers/llama3")), "llama3");
  // The fixture composes letters with their marks; the models with this rule do not.
  check_alike(*load_tokenizer(reference("formats/smol-tokenizer.gguf")), *load_tokenizer(reference("tokenizers/smol")),
              "smol", true);
}

TEST_CASE("GGUF's pieces with scores read as tokenizer.model does") {
  check_alike(*load_tokenizer(reference("formats/llama-tokenizer.gguf")),
              *load_tokenizer(reference("tokenizers/sentencepiece")), "sentencepiece");
}

TEST_CASE("llama2.c's tokenizer.bin reads as tokenizer.model does") {
  const auto found = load_tokenizer(reference("formats/llama2c/model.bin"));
  REQUIRE(found);
  check_alike(*found, *load_tokenizer(reference("tokenizers/sentencepiece")), "sentencepiece");
}

TEST_CASE("a GGUF file without a tokenizer has none; one of an unknown kind or rule is refused by its key") {
  CHECK(load_tokenizer(reference("formats/gpt2.gguf")) == nullptr);
  const std::string whole = read_file(reference("formats/gpt2-tokenizer.gguf"));
  const auto refusal = [&](const std::string& from, const std::string& to) -> std::string {
    std::string bytes = whole;
    const std::size_t at = bytes.find(from);
    REQUIRE(at != std::string::npos);
    bytes.replace(at, from.size(), to);
    const auto path = scratch_dir("gguf-tokenizer") / "m.gguf";
    write_file_atomically(path, bytes);
    try {
      load_tokenizer(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto says = [](const std::string& message, const std::string& part) {
    if (message.find(part) != std::string::npos) return true;
    MESSAGE("said: " << message);
    return false;
  };
  const auto number = [](std::uint64_t value, std::size_t bytes) {
    return std::string(reinterpret_cast<const char*>(&value), bytes);
  };
  const auto name = [&](const std::string& text) { return number(text.size(), 8) + text; };
  CHECK(says(refusal("tokenizer.ggml.model" + number(8, 4) + name("gpt2"),
                     "tokenizer.ggml.model" + number(8, 4) + name("bert")),
             "tokenizer.ggml.model: expected gpt2, llama or t5, found \"bert\""));
  CHECK(says(refusal(name("gpt-2"), name("gpt-9")), "tokenizer.ggml.pre: expected one of gpt-2"));
  CHECK(says(refusal("tokenizer.ggml.merges", "tokenizer.ggml.mergez"),
             "tokenizer.ggml.merges: expected a list of merges"));
  CHECK(says(refusal("tokenizer.ggml.tokens", "tokenizer.ggml.tokenz"), "tokenizer.ggml.tokens: expected a list"));
}

TEST_CASE("tokenizer.bin cut short anywhere is refused, or ends between two tokens") {
  const auto folder = scratch_dir("llama2c-tokenizer");
  const std::string whole = read_file(reference("formats/llama2c/tokenizer.bin"));
  int refused = 0;
  for (std::size_t size = 0; size < 200; ++size) {
    write_file_atomically(folder / "tokenizer.bin", whole.substr(0, size));
    try {
      read_llama2c_tokenizer(folder / "tokenizer.bin");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("tokenizer.bin") != std::string::npos);
      ++refused;
    }
  }
  CHECK(refused > 180);
  std::string negative = whole;
  negative.replace(8, 4, "\xff\xff\xff\xff");
  write_file_atomically(folder / "tokenizer.bin", negative);
  CHECK_THROWS_WITH_AS(read_llama2c_tokenizer(folder / "tokenizer.bin"),
                       doctest::Contains("token 0: expected a length"), Error);
}

}  // namespace headscope::gguf_tokenizer_test
