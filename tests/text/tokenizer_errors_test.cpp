// Broken tokenizer files: one clear error each, naming file and key.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/text/tokenizer.h"
#include "tests/support/paths.h"
#include "tests/text/cases.h"

namespace headscope::tokenizer_errors_test {

namespace fs = std::filesystem;
using namespace testing;
using nlohmann::json;

namespace {

void put(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// The Error that loading the folder raises, as one text; "" when it raises none.
std::string load_error(const fs::path& folder) {
  try {
    load_tokenizer(folder);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// A copy of a fixture's tokenizer.json in a folder of its own, after `change`.
template <class Change>
fs::path changed(const std::string& fixture, const Change& change) {
  const fs::path folder = scratch_dir("broken-tokenizer");
  json document = json::parse(read_file(reference("tokenizers/" + fixture + "/tokenizer.json")));
  change(document);
  put(folder / "tokenizer.json", document.dump());
  return folder;
}

fs::path gpt2_files(const std::string& vocab, const std::string& merges) {
  const fs::path folder = scratch_dir("broken-gpt2");
  put(folder / "vocab.json", vocab);
  put(folder / "merges.txt", merges);
  return folder;
}

bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  CHECK_MESSAGE(found, "no '", part, "' in: ", text);
  return found;
}

}  // namespace

TEST_CASE("a folder without a tokenizer has none, which is no error") {
  CHECK(load_tokenizer(scratch_dir("no-tokenizer")) == nullptr);
}

TEST_CASE("JSON that is cut off, of the wrong kind, or repeats a key") {
  const std::string whole = read_file(reference("tokenizers/gpt2-json/tokenizer.json"));
  const fs::path folder = scratch_dir("cut-off");
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 2}) {
    put(folder / "tokenizer.json", whole.substr(0, size));
    const std::string error = load_error(folder);
    has(error, "tokenizer.json");
    has(error, "JSON");
  }
  put(folder / "tokenizer.json", "[1]");
  has(load_error(folder), "expected a JSON object");
  put(folder / "tokenizer.json", "{}");
  has(load_error(folder), "expected the key 'model'");
  put(folder / "tokenizer.json", std::string(100000, '['));
  has(load_error(folder), "nested");
  has(load_error(gpt2_files(R"({"a":0,"b":1,"a":2})", "")), "\"a\" twice");
  has(load_error(gpt2_files("{\"a\xFF\":0}", "")), "UTF-8");
}

TEST_CASE("ids that are negative, fractional, enormous or given twice") {
  has(load_error(gpt2_files(R"({"a":0,"b":-1})", "")), "id -1 for 'b'");
  has(load_error(gpt2_files(R"({"a":0,"b":1.5})", "")), "expected a whole number, found 1.5");
  has(load_error(gpt2_files(R"({"a":0,"b":"1"})", "")), "expected a whole number");
  has(load_error(gpt2_files(R"({"a":0,"b":2000000000})", "")), "id 2000000000 for 'b'");
  has(load_error(gpt2_files(R"({"a":0,"b":99999999999999999999})", "")), "b");
  has(load_error(gpt2_files(R"({"a":3,"b":3})", "")), "id 3 for both 'a' and 'b'");
  has(load_error(gpt2_files(R"({"":3})", "")), "id 3 with none");
  has(load_error(gpt2_files("{}", "")), "an empty vocabulary");
  has(load_error(changed("gpt2-json", [](json& j) { j["model"]["vocab"]["extra"] = 5; })), "id 5 for both");
  has(load_error(changed("gpt2-json", [](json& j) { j["added_tokens"][0]["id"] = 475; })),
      "id 476 for the added token");
  has(load_error(changed("llama3", [](json& j) { j["added_tokens"][0]["id"] = 3; })), "id 3 for both");
  has(load_error(changed("llama3", [](json& j) { j["added_tokens"][0]["id"] = 2147483647; })), "id 2147483647");
}

TEST_CASE("merges that are malformed or name tokens that do not exist") {
  const std::string vocab = R"({"a":0,"b":1,"ab":2})";
  CHECK(load_error(gpt2_files(vocab, "#version: 0.2\na b\n")).empty());
  CHECK(load_error(gpt2_files(vocab, "a b\r\n\r\n")).empty());
  has(load_error(gpt2_files(vocab, "#version: 0.2\na b\nb a\n")), "merges.txt: line 3");
  has(load_error(gpt2_files(vocab, "a b\nb a\n")), "no token 'ba'");
  has(load_error(gpt2_files(vocab, "a x\n")), "no token 'x'");
  has(load_error(gpt2_files(vocab, "ab\n")), "line 1: expected two tokens with a space between, found 'ab'");
  has(load_error(gpt2_files(vocab, "a b ab\n")), "found 'a b ab'");
  has(load_error(gpt2_files(vocab, "a \n")), "two tokens");
  has(load_error(gpt2_files(vocab, "a \xFF\n")), "offset 2");
  has(load_error(changed("gpt2-json", [](json& j) { j["model"]["merges"][7] = "nonsense"; })), "model.merges[7]");
  has(load_error(changed("gpt2-json", [](json& j) { j["model"]["merges"][7] = 5; })), "model.merges[7]");
  has(load_error(changed("llama3",
                         [](json& j) {
                           j["model"]["merges"][7] = json::array({"a", "Q"});
                         })),
      "no token 'aQ'");
  has(load_error(changed("llama3", [](json& j) { j["model"]["merges"] = "x"; })), "expected an array of merges");
}

TEST_CASE("a vocabulary of words without its merges") {
  const fs::path folder = scratch_dir("no-merges");
  fs::copy_file(reference("tokenizers/gpt2/vocab.json"), folder / "vocab.json");
  const std::string error = load_error(folder);
  has(error, "merges.txt beside it");
  has(error, "hint: fetch the model's merges.txt");
}

TEST_CASE("what is not supported is named by its key") {
  const auto set = [](const char* key, const json& value) {
    return load_error(changed("gpt2-json", [&](json& j) { j[json::json_pointer(key)] = value; }));
  };
  has(set("/model/type", "Hash"), "model.type: expected BPE, Unigram, WordPiece or WordLevel, found Hash");
  has(set("/model/type", "WordPiece"), "model.type: expected BPE, since the pre_tokenizer makes bytes");
  has(set("/model/dropout", 0.1), "model.dropout");
  has(set("/model/end_of_word_suffix", "</w>"), "model.end_of_word_suffix");
  has(set("/model/unk_token", "<none>"), "model.unk_token");
  has(set("/normalizer", {{"type", "Rot13"}}), "normalizer.type: expected Prepend");
  has(set("/pre_tokenizer", {{"type", "UnicodeScripts"}}), "pre_tokenizer.type");
  has(set("/pre_tokenizer",
          {{"type", "Sequence"}, {"pretokenizers", {{{"type", "ByteLevel"}}, {{"type", "ByteLevel"}}}}}),
      "pre_tokenizer.pretokenizers[1]: expected one ByteLevel, found a second one");
  has(set("/pre_tokenizer", {{"type", "CharDelimiterSplit"}, {"delimiter", "--"}}),
      "pre_tokenizer.delimiter: expected one character");
  has(set("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "(["}}}, {"behavior", "Isolated"}}),
      "pre_tokenizer.pattern.Regex");
  has(set("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"String", "x"}}}, {"behavior", "Gone"}}),
      "pre_tokenizer.behavior");
  has(set("/decoder", {{"type", "CTC"}}), "decoder.type");
  has(set("/decoder", {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}),
      "decoder: expected Fuse before");
  has(set("/post_processor", {{"type", "Chat"}}), "post_processor.type");
  has(set("/post_processor", {{"type", "RobertaProcessing"}, {"cls", {"<|endoftext|>", 0}}}), "the key 'sep'");
  has(set("/post_processor", {{"type", "BertProcessing"}, {"cls", {"[CLS]", 0}}, {"sep", {"<|endoftext|>", 0}}}),
      "post_processor.cls[0]: expected a token of the vocabulary, found '[CLS]'");
  const json special = {{"SpecialToken", {{"id", "<|endoftext|>"}}}}, text = {{"Sequence", {{"id", "A"}}}};
  has(set("/post_processor", {{"type", "TemplateProcessing"}, {"single", {special, special, text}}}),
      "before the text");
  has(set("/post_processor",
          {{"type", "TemplateProcessing"}, {"single", {{{"SpecialToken", {{"id", "<gone>"}}}}, text}}}),
      "'<gone>'");
  json nested = {{"type", "NFC"}};
  for (int i = 0; i < 20; ++i) nested = {{"type", "Sequence"}, {"normalizers", json::array({nested})}};
  has(set("/normalizer", nested), "Sequences inside each other");
}

TEST_CASE("the small files beside a tokenizer") {
  const auto with = [](const char* name, const std::string& text) {
    const fs::path folder = scratch_dir("settings");
    fs::copy_file(reference("tokenizers/gpt2-json/tokenizer.json"), folder / "tokenizer.json");
    put(folder / name, text);
    return folder;
  };
  has(load_error(with("tokenizer_config.json", "{")), "tokenizer_config.json");
  has(load_error(with("tokenizer_config.json", R"({"add_bos_token":"yes"})")), "add_bos_token: expected true or false");
  has(load_error(with("tokenizer_config.json", R"({"add_bos_token":true,"bos_token":"<none>"})")),
      "bos_token '<none>'");
  has(load_error(with("tokenizer_config.json", R"({"bos_token":7})")), "bos_token");
  has(load_error(with("special_tokens_map.json", "[]")), "special_tokens_map.json");
  has(load_error(with("config.json", R"({"bos_token_id":"x"})")), "bos_token_id: expected a whole number");
  // A number that the vocabulary does not have is what small models' configurations often say: no error, and no token.
  CHECK(!load_tokenizer(with("config.json", R"({"bos_token_id":50256})"))->bos().has_value());
  CHECK(load_tokenizer(with("tokenizer_config.json", R"({"bos_token":"<|endoftext|>"})"))->bos() == 476);
}

TEST_CASE("tokenizer_config.json overrules ByteLevel's space, and added_tokens.json adds words to vocab.json") {
  const fs::path prefixed = scratch_dir("prefixed");
  fs::copy_file(reference("tokenizers/gpt2-json/tokenizer.json"), prefixed / "tokenizer.json");
  put(prefixed / "tokenizer_config.json", R"({"add_prefix_space":true})");
  const auto tokens = load_tokenizer(prefixed)->encode("the");
  REQUIRE(tokens.size() == 1);
  CHECK(tokens[0].bytes == " the");
  CHECK(tokens[0].end == 3);

  const fs::path added = gpt2_files(R"({"a":0,"b":1,"ab":2})", "a b\n");
  put(added / "added_tokens.json", R"({"bab":3})");
  CHECK(ids_of(load_tokenizer(added)->encode("abbab")) == std::vector<std::int32_t>{2, 3});
  put(added / "added_tokens.json", R"({"bab":2})");
  has(load_error(added), "id 2 for both");
}

TEST_CASE("hundreds of thousands of added tokens, and of special names, are read once each") {
  // Whoever looks through all that came before for each has 5 · 10¹⁰ names to compare, which takes minutes.
  constexpr int count = 300'000;
  std::string added, special;
  for (int i = 0; i < count; ++i) {
    added += fmt::format(R"({}"added{:06}":{})", i ? "," : "{", i, i + 2);
    if (i % 2) special += fmt::format(R"({}"added{:06}")", special.empty() ? "" : ",", i);
  }
  const fs::path folder = gpt2_files(R"({"a":0,"b":1})", "");
  put(folder / "added_tokens.json", added + "}");
  put(folder / "tokenizer_config.json", "{\"additional_special_tokens\":[" + special + "]}");
  const auto tokenizer = load_tokenizer(folder);
  CHECK(tokenizer->vocab_size() == count + 2);
  CHECK(ids_of(tokenizer->encode("aadded299998b")) == std::vector<std::int32_t>{0, 300'000, 1});
  CHECK(ids_of(tokenizer->encode("added299999", {.parse_special = true})) == std::vector<std::int32_t>{300'001});
}

TEST_CASE("bytes that a splitter removes belong to the token after them, or to the last") {
  const fs::path folder = changed("gpt2-json", [](json& j) {
    const json split = {{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "Removed"}, {"invert", false}};
    const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    j["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
  });
  const auto tokens = load_tokenizer(folder)->encode("  Q  Z ");
  REQUIRE(tokens.size() == 2);
  CHECK(tokens[0].bytes == "Q");
  CHECK(tokens[0].begin == 0);
  CHECK(tokens[0].end == 3);
  CHECK(tokens[1].bytes == "Z");
  CHECK(tokens[1].begin == 3);
  CHECK(tokens[1].end == 7);
  CHECK(load_tokenizer(folder)->encode("  ").empty());
}

TEST_CASE("added tokens as written are found before those in normalised text") {
  const fs::path folder = changed("gpt2-json", [](json& j) {
    j["normalizer"] = {{"type", "Lowercase"}};
    j["added_tokens"].push_back({{"id", 477}, {"content", "Ship"}, {"single_word", true}, {"normalized", true}});
    j["added_tokens"].push_back({{"id", 478}, {"content", "Xq"}, {"normalized", false}});
  });
  // "XqShip": "Xq" is cut out as written, so that "Ship", found in lower case, touches no word any more.
  CHECK(ids_of(load_tokenizer(folder)->encode("XqShip")) == std::vector<std::int32_t>{478, 477});
  CHECK(ids_of(load_tokenizer(folder)->encode("SHIP")) == std::vector<std::int32_t>{477});
  CHECK(load_tokenizer(folder)->encode("xqship").size() > 2);
  CHECK(load_tokenizer(folder)->token(477).bytes == "Ship");
}

TEST_CASE("a SentencePiece model that is cut off or something else") {
  const std::string whole = read_file(reference("tokenizers/sentencepiece/tokenizer.model"));
  const fs::path folder = scratch_dir("broken-model");
  for (const std::string& bytes :
       {std::string(), whole.substr(0, whole.size() / 2 + 1), std::string("version https://git-lfs"),
        std::string(1000, '\xFF'), whole.substr(3)}) {
    put(folder / "tokenizer.model", bytes);
    has(load_error(folder), "tokenizer.model: expected a SentencePiece model");
  }
  // A tokenizer.json of another kind gives way to it.
  put(folder / "tokenizer.model", whole);
  put(folder / "tokenizer.json", R"({"model":{"type":"Hash","vocab":[]}})");
  CHECK(load_tokenizer(folder)->describe().starts_with("SentencePiece"));
}

TEST_CASE("rules that make a token grow without end are refused where the file is read") {
  const json twice = {{"type", "Replace"}, {"pattern", {{"String", "e"}}}, {"content", "ee"}};
  const fs::path decoding = changed("metaspace", [&](json& document) {
    document["decoder"] = {{"type", "Sequence"}, {"decoders", json::array()}};
    for (int i = 0; i < 60; ++i) document["decoder"]["decoders"].push_back(twice);
  });
  has(load_error(decoding), "tokenizer: decoder: expected rules that make at most 65536 bytes of a token");
  const fs::path normalizing = changed("metaspace", [&](json& document) {
    document["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array()}};
    for (int i = 0; i < 60; ++i) document["normalizer"]["normalizers"].push_back(twice);
  });
  CHECK_THROWS_WITH_AS(load_tokenizer(normalizing)->encode("bees"), doctest::Contains("found more"), Error);
}

TEST_CASE("a tokenizer's pattern that would cut characters is refused by its key") {
  const fs::path folder = changed("gpt2-json", [](json& document) {
    document["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "\\C"}}}, {"behavior", "Isolated"}};
  });
  has(load_error(folder), "tokenizer.json: pre_tokenizer.pattern.Regex: expected a regular expression");
}

TEST_CASE("names from a file are cut and made visible in the error that quotes them") {
  const std::string evil = "\x1b]0;owned\x07" + std::string(5000, 'z');
  const fs::path folder = gpt2_files("{\"a\": 0, \"b\": 1}", "a " + evil + "\n");
  const std::string error = load_error(folder);
  has(error, "<1B>]0;owned<07>zzz");
  CHECK(error.find('\x1b') == std::string::npos);
  CHECK(error.size() < folder.string().size() + 600);
}

}  // namespace headscope::tokenizer_errors_test
