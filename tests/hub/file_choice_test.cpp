// Which files of a model are fetched, by the listings that published models have.

#include "core/hub/file_choice.h"

#include <doctest/doctest.h>

#include "core/base/error.h"

namespace headscope::file_choice_test {

using Names = std::vector<std::string>;

namespace {
HubModel model_of(const Names& names) {
  HubModel model{"org/name", std::string(40, '1'), {}};
  for (const std::string& name : names) model.files.push_back({name, 1000});
  return model;
}
Names chosen(const Names& names, const Names& patterns = {}) {
  Names out;
  for (const HubFile& file : choose_files(model_of(names), patterns).files) out.push_back(file.name);
  return out;
}
std::string refusal(const Names& names, const Names& patterns = {}) {
  try {
    chosen(names, patterns);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("one copy of the weights, configuration and tokenizer; other frameworks' files stay where they are") {
  // As openai-community/gpt2 lists them.
  CHECK(
      chosen({".gitattributes", "64.tflite", "README.md", "config.json", "flax_model.msgpack", "generation_config.json",
              "merges.txt", "model.safetensors", "onnx/config.json", "onnx/decoder_model.onnx", "pytorch_model.bin",
              "rust_model.ot", "tf_model.h5", "tokenizer.json", "tokenizer_config.json", "vocab.json"}) ==
      Names{"config.json", "generation_config.json", "merges.txt", "tokenizer.json", "tokenizer_config.json",
            "vocab.json", "model.safetensors"});
  // Shards by their index, not the publisher's second copy.
  CHECK(chosen({"config.json", "consolidated.safetensors", "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors", "model.safetensors.index.json", "tokenizer.json"}) ==
        Names{"config.json", "tokenizer.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors",
              "model-00002-of-00002.safetensors"});
  CHECK(chosen({"config.json", "pytorch_model.bin", "training_args.bin", "vocab.json"}) ==
        Names{"config.json", "vocab.json", "pytorch_model.bin"});
  CHECK(chosen({"config.json", "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin",
                "pytorch_model.bin.index.json", "tokenizer.model"}) ==
        Names{"config.json", "tokenizer.model", "pytorch_model.bin.index.json", "pytorch_model-00001-of-00002.bin",
              "pytorch_model-00002-of-00002.bin"});
  CHECK(chosen({"adapter_config.json", "adapter_model.safetensors", "README.md"}) ==
        Names{"adapter_config.json", "adapter_model.safetensors"});
  CHECK(chosen({"README.md", "small.Q8_0.gguf", "mmproj-small.gguf"}) == Names{"small.Q8_0.gguf"});
}

TEST_CASE("several GGUF files: one has to be named, and all are listed; patterns name files alone") {
  const Names quantised{"README.md", "a.Q4_K_M.gguf", "a.Q8_0.gguf", "config.json", "sub/b.Q4_K_M.gguf"};
  const std::string why = refusal(quantised);
  CHECK(why.find("--file") != std::string::npos);
  CHECK(why.find("a.Q4_K_M.gguf (1 kB), a.Q8_0.gguf (1 kB)") != std::string::npos);
  CHECK(chosen(quantised, {"a.Q8_0.gguf"}) == Names{"a.Q8_0.gguf"});
  CHECK(chosen(quantised, {"*Q4_K_M.gguf", "a.*"}) == Names{"a.Q4_K_M.gguf", "sub/b.Q4_K_M.gguf", "a.Q8_0.gguf"});
  CHECK(refusal(quantised, {"a.Q4_K_S.gguf"}).find("nearest names: a.Q4_K_M.gguf") != std::string::npos);
}

TEST_CASE("what is missing is said") {
  CHECK(refusal({"README.md", "tf_model.h5"}).find("none among README.md") != std::string::npos);
  CHECK(refusal({}).find("no files") != std::string::npos);
  const auto remarks = [](const Names& names) { return choose_files(model_of(names), {}).remarks; };
  CHECK(remarks({"config.json", "tokenizer.json", "model.safetensors"}).empty());
  REQUIRE(remarks({"config.json", "model.safetensors"}).size() == 1);
  CHECK(remarks({"config.json", "model.safetensors"})[0].find("no tokenizer") != std::string::npos);
  CHECK(remarks({"model.safetensors"})[0].find("no config.json") != std::string::npos);
}

}  // namespace headscope::file_choice_test
