// Models of pictures and text of which the half that reads text is read: what their published files say, and what is
// refused. families_test holds what they compute to the reference.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"

namespace headscope::text_halves_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {
ModelConfig read(const std::string& type, const std::string& json) {
  return family(type, "test").read_config(ConfigReader::parse(json, "config.json"));
}

/// A folder of the reference with another config.json.
fs::path with_config(const std::string& name, const std::string& from, const std::string& to) {
  const fs::path source = reference("families/" + name), folder = scratch_dir("text-half-" + name);
  std::string text = read_file(source / "config.json", 1 << 20);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  write_file_atomically(folder / "config.json", text);
  fs::copy_file(source / "model.safetensors", folder / "model.safetensors");
  return folder;
}
}  // namespace

TEST_CASE("Gemma 3 of 4B says little of its text: the rest is what all have") {
  const ModelConfig c = read("gemma3", R"({"model_type": "gemma3", "eos_token_id": [1, 106], "mm_tokens_per_image": 256,
    "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
      "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024},
    "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"}})");
  CHECK(c.dims.layers == 34);
  CHECK(c.dims.heads == 8);
  CHECK(c.dims.kv_heads == 4);
  CHECK(c.dims.d_head == 256);
  CHECK(c.dims.d_model == 2560);
  CHECK(c.dims.d_mlp == 10240);
  CHECK(c.dims.vocab == 262208);
  CHECK(c.context == 131072);
  CHECK(c.eos == 1);
  CHECK(c.tied_embeddings);
  CHECK(!c.vision);
  CHECK(c.window(0) == 1024);
  CHECK(c.window(5) == 0);
  CHECK(std::ranges::count(c.windows, 1024) == 29);
  CHECK(c.rotary_of(5).base == 1e6);
  CHECK(c.rotary_of(5).factor == 8);
  CHECK(c.rotary_of(4).base == 1e4);
  CHECK(c.rotary_of(4).scaling == RotaryConfig::Scaling::none);
}

TEST_CASE("Qwen2.5-VL of 3B has its keys beside all others; LLaVA leaves out what a Llama has as everybody had it") {
  const ModelConfig qwen = read("qwen2_5_vl", R"({"model_type": "qwen2_5_vl", "eos_token_id": 151645,
    "image_token_id": 151655, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 11008,
    "max_position_embeddings": 128000, "max_window_layers": 70, "num_attention_heads": 16, "num_hidden_layers": 36,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
    "tie_word_embeddings": true, "use_sliding_window": false, "vision_config": {"depth": 32},
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}, "vocab_size": 151936})");
  CHECK(qwen.tied_embeddings);
  CHECK(qwen.windows.empty());
  CHECK(qwen.rotary.base == 1e6);
  CHECK(qwen.rotary.scaling == RotaryConfig::Scaling::none);
  CHECK(qwen.dims.d_head == 128);
  CHECK(qwen.norm_epsilon == 1e-6);
  CHECK(qwen.bias.q);
  CHECK(!qwen.bias.o);
  const ModelConfig llava = read("llava", R"({"model_type": "llava", "tie_word_embeddings": false,
    "text_config": {"max_position_embeddings": 4096, "model_type": "llama", "rms_norm_eps": 1e-05, "vocab_size": 32064}})");
  CHECK(llava.text_family == "llama");
  CHECK(llava.dims.layers == 32);
  CHECK(llava.dims.kv_heads == 32);
  CHECK(llava.dims.d_mlp == 11008);
  CHECK(llava.dims.vocab == 32064);
  CHECK(llava.context == 4096);
}

TEST_CASE("a text of another family, and keys within it that nobody reads, are refused") {
  CHECK_THROWS_WITH_AS(read("mistral3", R"({"text_config": {"model_type": "mistral4"}})"),
                       doctest::Contains("model_type"), Error);
  CHECK_THROWS_WITH_AS(read("gemma3", R"({"model_type": "gemma3"})"), doctest::Contains("text_config"), Error);
  const fs::path folder =
      with_config("qwen3_vl", "\"attention_bias\": true", "\"attention_bias\": true, \"sliding_window\": 5");
  CHECK_THROWS_WITH_AS(load_config(folder), doctest::Contains("text_config: sliding_window"), Error);
}

TEST_CASE("a matrix to logits that differs from the embedding it is said to be is read from the file") {
  const fs::path folder =
      with_config("mistral3", "\"image_token_index\": 42", "\"image_token_index\": 42, \"tie_word_embeddings\": true");
  CHECK(load_config(folder).tied_embeddings);
  const Subject said_tied(folder), own(reference("families/mistral3"));
  CHECK_FALSE(said_tied.loaded.model->config().tied_embeddings);
  const std::vector<std::int32_t> ids{3, 5, 7, 4};
  CHECK(absolute(said_tied.trace(ids, MapStorage::factored, false)->logits,
                 own.trace(ids, MapStorage::factored, false)->logits) == 0);
  Subject{with_config("llava", "\"image_token_index\": 42", "\"image_token_index\": 42")};
}

}  // namespace headscope::text_halves_test
