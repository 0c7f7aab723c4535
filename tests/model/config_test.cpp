#include "core/model/config.h"
#include "core/base/json.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/model/family.h"
#include "tests/support/paths.h"

namespace headscope::config_test {

using testing::reference;
using testing::scratch_dir;
using Json = nlohmann::json;

namespace {

Json gpt2() {
  return Json::parse(read_file(reference("gpt2-random/config.json")));
}
Json llama() {
  return Json::parse(read_file(reference("llama-gqa/config.json")));
}

ModelConfig load_text(const std::string& text) {
  const auto folder = scratch_dir("config");
  std::ofstream(folder / "config.json") << text;
  return load_config(folder);
}

ModelConfig load(const Json& json) {
  return load_text(json.dump());
}

/// The message of the Error that loading gives; "" when it loads.
std::string complaint(const Json& json) {
  try {
    load(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a GPT-2 configuration becomes data, with GPT-2's defaults for what it leaves out") {
  const ModelConfig config = load_config(reference("gpt2-random"));
  CHECK(config.name == "gpt2-random");
  CHECK(config.family == "gpt2");
  CHECK(config.dims.layers == 2);
  CHECK(config.dims.heads == 4);
  CHECK(config.dims.kv_heads == 4);
  CHECK(config.dims.d_head == 8);
  CHECK(config.dims.d_model == 32);
  CHECK(config.dims.d_mlp == 128);  // n_inner is null: 4 · 32
  CHECK(config.dims.vocab == 257);
  CHECK(config.context == 48);
  CHECK(config.norm == NormKind::layer_norm);
  CHECK(config.norm_epsilon == doctest::Approx(1e-5).epsilon(1e-12));
  CHECK(config.position == PositionKind::learned);
  CHECK(config.activation == Activation::gelu_tanh);
  CHECK_FALSE(config.gated_mlp);
  CHECK(config.bias.q);
  CHECK(config.bias.up);
  CHECK(config.tied_embeddings);
  CHECK(config.scale_by_inverse_sqrt_d);
  CHECK_FALSE(config.scale_by_inverse_layer);
  CHECK(config.bos == 256);
  CHECK(config.eos == 256);
}

TEST_CASE("GPT-2's options are read, not assumed") {
  const ModelConfig erf = load_config(reference("gpt2-untied-erf"));
  CHECK(erf.activation == Activation::gelu);
  CHECK(erf.dims.d_mlp == 40);
  CHECK(erf.norm_epsilon == doctest::Approx(1e-3).epsilon(1e-12));
  CHECK(erf.scale_by_inverse_layer);
  CHECK_FALSE(erf.tied_embeddings);
  CHECK_FALSE(erf.bos.has_value());
  const ModelConfig relu = load_config(reference("gpt2-f16"));
  CHECK(relu.activation == Activation::relu);
  CHECK_FALSE(relu.scale_by_inverse_sqrt_d);
}

TEST_CASE("a Llama configuration becomes data") {
  const ModelConfig config = load_config(reference("llama-gqa"));
  CHECK(config.family == "llama");
  CHECK(config.dims.heads == 4);
  CHECK(config.dims.kv_heads == 2);
  CHECK(config.dims.d_head == 8);
  CHECK(config.dims.d_mlp == 44);
  CHECK(config.context == 64);
  CHECK(config.norm == NormKind::rms_norm);
  CHECK(config.norm_epsilon == doctest::Approx(1e-6).epsilon(1e-12));
  CHECK(config.position == PositionKind::rotary);
  CHECK(config.rotary.base == 10000);
  CHECK(config.rotary.scaling == RotaryConfig::Scaling::none);
  CHECK(config.activation == Activation::silu);
  CHECK(config.gated_mlp);
  CHECK_FALSE(config.bias.q);
  CHECK_FALSE(config.bias.up);
  CHECK_FALSE(config.tied_embeddings);
  CHECK(config.bos == 1);
  CHECK(config.eos == 2);

  const ModelConfig bias = load_config(reference("llama-bias"));
  CHECK(bias.dims.d_head == 12);  // head_dim, not 24 / 3
  CHECK(bias.bias.o);
  CHECK(bias.bias.down);
  CHECK(bias.rotary.scaling == RotaryConfig::Scaling::linear);
  CHECK(bias.rotary.factor == 2);
}

TEST_CASE("Llama-3 frequencies are read from either spelling") {
  const ModelConfig config = load_config(reference("llama-rope3"));
  CHECK(config.rotary.scaling == RotaryConfig::Scaling::llama3);
  CHECK(config.rotary.factor == 8);
  CHECK(config.rotary.low_frequency_factor == 1);
  CHECK(config.rotary.high_frequency_factor == 4);
  CHECK(config.rotary.original_context == 128);

  Json newer = Json::parse(read_file(reference("llama-rope3/config.json")));
  newer["rope_parameters"] = newer["rope_scaling"];
  newer["rope_parameters"]["rope_theta"] = 500000.0;
  newer.erase("rope_scaling");
  newer.erase("rope_theta");
  const ModelConfig same = load(newer);
  CHECK(same.rotary.scaling == RotaryConfig::Scaling::llama3);
  CHECK(same.rotary.base == 500000);
  CHECK(same.rotary.original_context == 128);
}

TEST_CASE("a list of end tokens gives its first; an id outside the vocabulary gives none; null is absent") {
  Json json = llama();
  json["eos_token_id"] = {7, 8};
  json["bos_token_id"] = 61;
  json["num_key_value_heads"] = nullptr;
  const ModelConfig config = load(json);
  CHECK(config.eos == 7);
  CHECK_FALSE(config.bos.has_value());
  CHECK(config.dims.kv_heads == 4);
}

TEST_CASE("every absurd value of a GPT-2 configuration is an error that names its key") {
  const std::vector<std::pair<std::string, Json>> bad = {
      {"n_layer", 0},
      {"n_layer", -1},
      {"n_layer", 1000000},
      {"n_layer", "two"},
      {"n_layer", 2.5},
      {"n_layer", nullptr},
      {"n_layer", true},
      {"n_layer", 18446744073709551615ull},
      {"n_head", 0},
      {"n_head", 3},
      {"n_head", 64},
      {"n_embd", 1 << 30},
      {"n_embd", Json::array()},
      {"n_inner", -4},
      {"vocab_size", 0},
      {"vocab_size", 1ll << 40},
      {"n_positions", 0},
      {"n_positions", -5},
      {"layer_norm_epsilon", -1e-5},
      {"layer_norm_epsilon", "small"},
      {"layer_norm_epsilon", 2},
      {"activation_function", "mish"},
      {"activation_function", 3},
      {"tie_word_embeddings", "yes"},
      {"scale_attn_weights", 1},
      {"add_cross_attention", true},
      {"model_type", "reformer"},
      {"model_type", 4},
      {"bos_token_id", "x"},
      {"quantization_config", {{"bits", 4}}},
  };
  for (const auto& [key, value] : bad) {
    Json json = gpt2();
    json[key] = value;
    const std::string message = complaint(json);
    CAPTURE(key);
    CAPTURE(value.dump());
    CAPTURE(message);
    CHECK(has(message, "config.json: " + key));
    CHECK(has(message, "expected"));
  }
}

TEST_CASE("every absurd value of a Llama configuration is an error that names its key") {
  const std::vector<std::pair<std::string, Json>> bad = {
      {"num_hidden_layers", 0},
      {"num_attention_heads", 6},
      {"num_key_value_heads", 3},
      {"num_key_value_heads", 0},
      {"head_dim", 7},
      {"head_dim", 0},
      {"head_dim", 1 << 20},
      {"hidden_size", nullptr},
      {"intermediate_size", -1},
      {"rms_norm_eps", -1},
      {"rope_theta", 0},
      {"rope_theta", "10000"},
      {"hidden_act", "xielu"},
      {"rope_scaling", 3},
      {"partial_rotary_factor", 0.5},
      {"max_position_embeddings", 0},
      {"attention_bias", 1},
      {"vocab_size", nullptr},
  };
  for (const auto& [key, value] : bad) {
    Json json = llama();
    json[key] = value;
    const std::string message = complaint(json);
    CAPTURE(key);
    CAPTURE(value.dump());
    CAPTURE(message);
    CHECK(has(message, "config.json: " + key));
  }
}

TEST_CASE("a rope scaling that is not supported, or not whole, is an error that says what is") {
  const auto with = [](const Json& scaling) {
    Json json = llama();
    json["rope_scaling"] = scaling;
    return complaint(json);
  };
  CHECK(has(with({{"rope_type", "resonance"}, {"factor", 4}}),
            "rope_scaling: rope_type: expected one of default, linear, llama3, yarn, dynamic, longrope"));
  CHECK(has(with({{"type", "longrope"}, {"short_factor", {1}}, {"long_factor", {1}}}),
            "original_max_position_embeddings"));
  CHECK(has(with({{"type", "longrope"},
                  {"original_max_position_embeddings", 8},
                  {"short_factor", {1, 2, 3}},
                  {"long_factor", {1, 2, 3, 4}}}),
            "rope_scaling: short_factor: expected a number for each of the"));
  CHECK(has(with({{"type", "linear"}}), "rope_scaling: factor"));
  CHECK(has(with({{"type", "linear"}, {"factor", 0.5}}), "rope_scaling: factor"));
  CHECK(has(with({{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 4}}),
            "rope_scaling: high_freq_factor"));
  CHECK(with({{"rope_type", "default"}}).empty());
}

TEST_CASE("an unknown architecture is told which ones are known") {
  Json json = gpt2();
  json["model_type"] = "rwkv";
  const std::string message = complaint(json);
  CHECK(has(message, "expected one of gpt2, llama, qwen2, qwen3, mistral, gpt_neox, "));
}

TEST_CASE("a configuration that is no JSON, no object, or not there is one clear error") {
  CHECK_THROWS_WITH_AS(load_text("{\"model_type\": \"gpt2\","), doctest::Contains("config.json"), Error);
  CHECK_THROWS_WITH_AS(load_text("[1, 2]"), doctest::Contains("expected a JSON object, found array"), Error);
  CHECK_THROWS_WITH_AS(load_text(""), doctest::Contains("config.json"), Error);
  CHECK_THROWS_WITH_AS(load_text("{}"), doctest::Contains("model_type"), Error);
  CHECK_THROWS_WITH_AS(load_text("{\"model_type\": \"gpt2\", \"n_layer\": NaN}"), doctest::Contains("syntax error"),
                       Error);
  CHECK_THROWS_WITH_AS(load_config(scratch_dir("empty-folder")), doctest::Contains("config.json"), Error);
  // Deep nesting must not exhaust the stack.
  CHECK_THROWS_AS(load_text(std::string(200000, '[')), Error);
  CHECK_THROWS_AS(load_text("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}"), Error);
}

TEST_CASE("what a library settles whatever a configuration says is settled so") {
  const auto changed = [](const char* family, const std::string& from, const std::string& to) {
    std::string text = read_file(reference("families") / family / "config.json");
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    const auto folder = scratch_dir("settled");
    write_file_atomically(folder / "config.json", text.replace(at, from.size(), to));
    return load_config(folder);
  };
  // Nemotron-H's unembedding is its own.
  CHECK_FALSE(changed("nemotron_h", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true").tied_embeddings);
  // Where nothing attends there is no gate on what attention puts out.
  const ModelConfig states = changed("qwen3_5_text", "\"full_attention\"", "\"linear_attention\"");
  CHECK(states.dims.state_space());
  CHECK_FALSE(states.output_gate);
  CHECK_FALSE(states.bias.output_gate);
}

TEST_CASE("the families are a list that a person can read") {
  REQUIRE(families().size() == 249);
  CHECK(families()[0].model_type == "gpt2");
  CHECK(families()[1].model_type == "llama");
}

TEST_CASE("a count of experts may be told by either name, and by both where they agree") {
  Json json = Json::parse(read_file(reference("families/qwen3_moe/config.json")));
  const int count =
      json.contains("num_experts") ? json["num_experts"].get<int>() : json["num_local_experts"].get<int>();
  for (const char* key : {"num_experts", "num_local_experts"}) {
    json.erase("num_experts");
    json.erase("num_local_experts");
    json[key] = count;
    CHECK(load(json).experts.count == count);
  }
  json["num_experts"] = json["num_local_experts"] = count;
  CHECK(load(json).experts.count == count);
  json["num_local_experts"] = count + 1;
  CHECK(complaint(json).find(fmt::format("num_local_experts: expected {} as num_experts, found {}", count,
                                         count + 1)) != std::string::npos);
}

TEST_CASE("Qwen 2 without a list of kinds has its window from the layer on that it names") {
  Json json = Json::parse(read_file(reference("families/qwen2/config.json")));
  json.erase("layer_types");
  CHECK(load(json).windows == std::vector<int>{0, 5, 5});
  json["max_window_layers"] = 2;
  CHECK(load(json).windows == std::vector<int>{0, 0, 5});
  json["use_sliding_window"] = false;
  CHECK(load(json).windows.empty());
}

}  // namespace headscope::config_test
