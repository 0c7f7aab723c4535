// Models of pictures and text of which the half that reads text is read: what their published files say, and what is
// refused. families_test holds what they compute to the reference.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "core/analysis/model_facts.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/intervention.h"
#include "core/io/safetensors.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "tests/model/parity.h"
#include "tests/support/largest_difference.h"
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

TEST_CASE("PaliGemma's published files say little of their text, and what sees both ways is a mask") {
  const ModelConfig c =
      read("paligemma", R"({"model_type": "paligemma", "image_token_index": 257152, "vocab_size": 257152,
    "text_config": {"hidden_size": 2048, "intermediate_size": 16384, "model_type": "gemma", "num_attention_heads": 8,
      "num_hidden_layers": 18, "num_image_tokens": 256, "num_key_value_heads": 1, "vocab_size": 257216},
    "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"}})");
  CHECK(c.dims.layers == 18);
  CHECK(c.dims.kv_heads == 1);
  CHECK(c.dims.d_head == 256);
  CHECK(c.dims.vocab == 257216);
  CHECK(c.context == 8192);
  CHECK(c.tied_embeddings);
  CHECK(c.text_family == "gemma");
  CHECK(c.activation == Activation::gelu_tanh);
  CHECK(c.causal);
  for (const char* folder : {"families/paligemma", "families/paligemma-gemma"}) {
    CAPTURE(folder);
    Subject s(reference(folder));
    const auto expected = SafetensorsFile::open(reference(folder) / "expected.safetensors");
    RunRequest request;
    request.ids = expected.entry("tokens").items<std::int32_t>();
    request.edits.push_back(parse_intervention("*@0..4: mask prefix 5", "test"));
    const auto trace = run(s.loaded, request, Ctx{*s.backend});
    CHECK(largest_difference(trace->logits, expected.tensor("logits_of_prefix")) < 1e-4);
    CHECK(largest_difference(trace->logits, expected.tensor("logits")) > 1e-2);
  }
}

TEST_CASE("of PaliGemma the whole says whether embeddings are tied, and ties them where it does not say it") {
  const auto tied = [](const char* whole, const char* half) {
    return read("paligemma", fmt::format(R"({{"model_type": "paligemma", {} "text_config": {{"hidden_size": 16, {}
      "intermediate_size": 16, "model_type": "gemma", "num_attention_heads": 2, "head_dim": 8, "num_hidden_layers": 1,
      "num_key_value_heads": 1, "vocab_size": 20}}}})",
                                         whole, half))
        .tied_embeddings;
  };
  const char *none = "", *yes = "\"tie_word_embeddings\": true,", *no = "\"tie_word_embeddings\": false,";
  for (const char* half : {none, yes, no}) {
    CAPTURE(half);
    CHECK(tied(none, half));
    CHECK(tied(yes, half));
    CHECK_FALSE(tied(no, half));
  }
}

TEST_CASE("Gemma 4 says heads, keys and rotations by kind of layer, in older files and in newer ones") {
  const std::string start = R"({"model_type": "gemma4", "text_config": {"model_type": "gemma4_text",
    "num_hidden_layers": 7, "num_attention_heads": 8, "num_key_value_heads": 4, "hidden_size": 64, "sliding_window": 9,
    "intermediate_size": 100, "head_dim": 16, "vocab_size": 50, "vocab_size_per_layer_input": 50,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
                    "full_attention", "sliding_attention", "sliding_attention"],
    "num_kv_shared_layers": 3, "use_double_wide_mlp": true, "attention_k_eq_v": true)";
  const auto with = [&](const std::string& rest) { return read("gemma4", start + rest + "}}"); };
  const std::string old = R"(, "global_head_dim": 32, "num_global_key_value_heads": 2)";
  const ModelConfig c = with(old);
  CHECK(c.windows == std::vector<int>{9, 0, 9, 9, 0, 9, 0});  // the last one sees all, whatever the list says
  CHECK(c.kv_layers == std::vector<int>{0, 1, 2, 3, 1, 3, 1});
  CHECK(c.values_are_keys == std::vector<bool>{false, true, false, false, false, false, false});
  CHECK(c.dims.widths_of(0) == LayerWidths{4, 16, 100});
  CHECK(c.dims.widths_of(1) == LayerWidths{2, 32, 100});
  CHECK(c.dims.widths_of(4) == LayerWidths{2, 32, 200});
  CHECK(c.dims.widths_of(5) == LayerWidths{4, 16, 200});
  CHECK(c.dims.kv_of(7, 0) == 3);
  CHECK(c.dims.kv_of(7, 1) == 1);
  CHECK(c.dims.d_layer == 256);
  CHECK(c.rotary_of(1).base == 1e6);
  CHECK(c.rotary_of(1).pairs == 4);  // of 16
  CHECK(c.rotary_of(0).base == 1e4);
  CHECK(c.rotary_of(0).pairs == -1);
  const ModelConfig again = with(R"(, "per_layer_config": {"1": {"head_dim": 32, "num_key_value_heads": 2},
    "4": {"head_dim": 32, "num_key_value_heads": 2}, "6": {"head_dim": 32, "num_key_value_heads": 2}})");
  CHECK(again.dims.widths == c.dims.widths);
  const auto refused = [&](const std::string& rest, const char* words) {
    CAPTURE(rest);
    CHECK_THROWS_WITH_AS(with(rest), doctest::Contains(words), Error);
  };
  refused(R"(, "per_layer_config": {"1": {"head_dim": 32}})", "per_layer_config: 4");
  refused(R"(, "per_layer_config": {"0": {"head_dim": 32}})", "per_layer_config: 0");
  refused(R"(, "per_layer_config": {"1": {"intermediate_size": 32}})", "intermediate_size");
  refused(old + R"(, "use_bidirectional_attention": "all")", "use_bidirectional_attention");
  refused(old + R"(, "num_global_key_value_heads": 3)", "num_global_key_value_heads");
  refused(R"(, "num_kv_shared_layers": 6)", "num_kv_shared_layers");
  refused(old + R"(, "rope_parameters": {"full_attention": {"rope_type": "default", "partial_rotary_factor": 0.5}})",
          "partial_rotary_factor");
}

TEST_CASE("Llama 4 as it is published: an empty list of layers without positions, a switch that is a number") {
  const ModelConfig c = read("llama4", R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text",
    "num_hidden_layers": 8, "no_rope_layers": [], "attn_temperature_tuning": 4, "interleave_moe_layer_step": 2,
    "intermediate_size": 8192, "rope_scaling": {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0,
    "high_freq_factor": 1.0001, "original_max_position_embeddings": 8192}}})");
  CHECK(c.layer_turns == std::vector<bool>{true, true, true, false, true, true, true, false});
  CHECK(c.chunks == std::vector<int>{8192, 8192, 8192, 0, 8192, 8192, 8192, 0});
  CHECK(c.experts.layers == std::vector<bool>{false, true, false, true, false, true, false, true});
  CHECK(c.unturned_growth == 0.1);
  CHECK(c.unturned_floor == 8192);
  CHECK(c.qk_norm_turned);
  CHECK(c.dims.d_mlp == 16384);
  CHECK(c.experts.width == 8192);
  CHECK(c.experts.shared_width == 8192);
  CHECK(!c.told_by_distance(8192));
  CHECK(!read("llama4", R"({"text_config": {"model_type": "llama4_text", "attn_temperature_tuning": false}})")
             .unturned_growth);
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

TEST_CASE("what the text of a Mistral Small 4 leaves out is what that of all of them has") {
  const ModelConfig c = read("mistral3", R"({"model_type": "mistral3", "text_config": {"model_type": "mistral4",
    "rms_norm_eps": 1e-05, "rope_parameters": {"type": "yarn", "rope_theta": 10000.0, "factor": 128.0,
      "original_max_position_embeddings": 8192, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}}})");
  CHECK(c.text_family == "mistral4");
  CHECK(c.dims.layers == 36);
  CHECK(c.dims.heads == 32);
  CHECK(c.dims.kv_latent == 256);
  CHECK(c.dims.vocab == 131072);
  CHECK(c.context == 1048576);
  CHECK(c.experts.count == 128);
  CHECK(c.rotary.width == 64);
  CHECK(c.rotary.query_growth == 0.1);
}

TEST_CASE("layers of Llama 3.2 Vision that look at pictures are passed by where there is none") {
  const ModelConfig c = read("mllama", R"({"model_type": "mllama", "image_token_index": 128256,
    "text_config": {"model_type": "mllama_text_model", "eos_token_id": [128001, 128008, 128009],
      "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38], "num_hidden_layers": 40, "rope_scaling": {"factor": 8.0,
      "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
      "rope_type": "llama3"}}, "vision_config": {"model_type": "mllama_vision_model"}})");
  CHECK(c.dims.layers == 32);  // as Llama 3.1 of 8B, which the text half is
  CHECK(c.dims.kv_heads == 8);
  CHECK(c.dims.vocab == 128256);
  CHECK(c.rotary.base == 500000);
  CHECK(c.rotary.scaling == RotaryConfig::Scaling::llama3);
  CHECK_FALSE(c.tied_embeddings);
  const auto layers = [](const std::string& said) {
    return read("mllama",
                R"({"text_config": {"model_type": "mllama_text_model", "num_hidden_layers": 12)" + said + "}}")
        .dims.layers;
  };
  CHECK(layers("") == 10);  // 3 and 8 of the usual ones
  CHECK(layers(R"(, "cross_attention_layers": [])") == 12);
  CHECK(layers(R"(, "cross_attention_layers": [1, 1, 40])") == 11);
  CHECK_THROWS_WITH_AS(layers(R"(, "cross_attention_layers": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])"),
                       doctest::Contains("cross_attention_layers"), Error);
  // Their tensors stand unread, under the names they have; those that are read move up.
  const std::vector<std::string> unused = model_facts(reference("families/mllama")).unused;
  const auto behind = [&](const std::string& start) {
    return std::ranges::count_if(unused, [&](const std::string& name) { return name.starts_with(start); });
  };
  CHECK(behind("language_model.model.layers.0.") == 13);
  CHECK(behind("language_model.model.layers.2.") == 13);
  CHECK(behind("language_model.model.layers.") == 26);
  CHECK(behind("model.layers.") == 0);
  // A configuration with more layers of text than the file has, of which some would be read twice.
  Backend backend{1};
  CHECK_THROWS_WITH_AS(Model::load(with_config("mllama", "\"cross_attention_layers\": [\n   0,\n   2\n  ]",
                                               "\"cross_attention_layers\": []"),
                                   backend),
                       doctest::Contains("config.json says 5 layers, the file holds 3"), Error);
}

TEST_CASE("what transformers has where the text half says nothing, of those whose defaults are their own") {
  const ModelConfig emu = read("emu3", R"({"text_config": {"model_type": "emu3_text_model"}})");
  CHECK(emu.rotary.base == 1e6);
  CHECK(emu.norm_epsilon == 1e-5);
  CHECK(emu.dims.vocab == 184622);
  CHECK(emu.dims.kv_heads == 8);
  const ModelConfig docling = read("granite_docling", R"({"text_config": {"model_type": "granite_docling_text"}})");
  CHECK(docling.embedding_scale == 12);
  CHECK(docling.residual_scale == 0.263);
  CHECK(docling.score_scale == 0.015625);
  CHECK(docling.logit_scale == 0.25);
  CHECK(docling.tied_embeddings);
  CHECK(docling.dims.heads == 16);
  const std::string glm = R"({"text_config": {"model_type": "glm4v_text", "num_hidden_layers": 2, "hidden_size": 64,
    "intermediate_size": 30, "num_attention_heads": 4, "max_position_embeddings": 90, "vocab_size": 50)";
  for (const char* type : {"glm4v", "glm46v"}) {
    CAPTURE(type);
    CHECK(read(type, glm + "}}").norm_epsilon == 1e-5);
    CHECK(read(type, glm + "}}").rotary.width <= 0);
    CHECK(read(type, glm + R"(, "partial_rotary_factor": 0.5}})").rotary.width == 8);
  }
  CHECK(read("qwen3_omni_moe",
             R"({"thinker_config": {"text_config": {"model_type": "qwen3_omni_moe_text", "head_dim": 128}}})")
            .experts.renormalized);
  const ModelConfig qwen = read("qwen2_5_omni", R"({"thinker_config": {"text_config": {"use_sliding_window": true,
    "num_hidden_layers": 30, "model_type": "qwen2_5_omni_text"}}})");
  CHECK(qwen.rotary.base == 1e6);
  CHECK(qwen.window(27) == 0);
  CHECK(qwen.window(28) == 32768);
  CHECK_FALSE(qwen.tied_embeddings);
}

TEST_CASE("published files' other words, and what of them is refused") {
  CHECK(read("kimi_k25", R"({"text_config": {"model_type": "kimi_k2", "first_k_dense_replace": 1}})").text_family ==
        "deepseek_v3");
  CHECK_THROWS_WITH_AS(read("qwen2_5_omni", R"({"text_config": {"model_type": "qwen2_5_omni_text"}})"),
                       doctest::Contains("thinker_config"), Error);
  CHECK_THROWS_WITH_AS(read("glm4v_moe", R"({"text_config": {"model_type": "glm4v_moe_text", "use_qk_norm": true,
    "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 30, "num_attention_heads": 4,
    "max_position_embeddings": 90, "vocab_size": 50}})"),
                       doctest::Contains("use_qk_norm"), Error);
  CHECK_THROWS_WITH_AS(read("hunyuan_vl", R"({"head_dim": 128, "attention_head_dim": 64})"),
                       doctest::Contains("attention_head_dim"), Error);
  CHECK_THROWS_WITH_AS(read("aria", R"({"text_config": {"model_type": "aria_text", "hidden_act": "gelu"}})"),
                       doctest::Contains("hidden_act"), Error);
  CHECK_THROWS_WITH_AS(read("molmo2", R"({"text_config": {"model_type": "molmo2_text", "additional_vocab_size": 64}})"),
                       doctest::Contains("additional_vocab_size"), Error);
  CHECK_THROWS_WITH_AS(read("molmo2", R"({"text_config": {"model_type": "molmo2_text", "qk_norm_type": "none"}})"),
                       doctest::Contains("qk_norm_type"), Error);
  const ModelConfig molmo = read("molmo2", R"({"text_config": {"model_type": "molmo2_text", "layer_norm_eps": 1e-5,
    "qkv_bias": true}})");
  CHECK(molmo.norm_epsilon == 1e-5);
  CHECK(molmo.bias.q);
  CHECK_FALSE(molmo.bias.o);
}

TEST_CASE("a text of another family, and keys within it that nobody reads, are refused") {
  CHECK_THROWS_WITH_AS(read("mistral3", R"({"text_config": {"model_type": "mistral5"}})"),
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
