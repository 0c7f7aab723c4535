// What configurations of families say where their files leave it out, and what is refused by name. families_test and
// encoder_decoders_test hold what they compute to the reference.

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "tests/support/paths.h"

namespace headscope::later_families_test {

using namespace testing;
using Json = nlohmann::json;

namespace {
Json config_of(const std::string& folder) {
  return Json::parse(read_file(reference(folder) / "config.json"));
}

ModelConfig read(const Json& json) {
  return family(json.at("model_type").get<std::string>(), "test")
      .read_config(ConfigReader::parse(json.dump(), "config.json"));
}

/// What the Error says that reading throws; "" where it throws none.
std::string refusal(const Json& json) {
  try {
    (void)read(json);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<int> extents(const ModelDims& d) {
  return {d.layers, d.heads,    d.kv_heads, d.d_head,    d.value_width(), d.d_model,
          d.d_mlp,  d.q_latent, d.vocab,    d.kv_latent, d.experts};
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("Granite with windows has a base of rotation by layer, or none, and windows in three layers of four") {
  Json json = config_of("families/granite_swa");
  const ModelConfig all = read(json);
  CHECK(all.learned_sinks);
  CHECK(all.rotary_of(0).base == 100);
  CHECK_FALSE(all.turns(1));
  CHECK(all.rotary_of(2).base == 60);
  CHECK(all.rotary_of(3).base == 30);
  json.erase("layer_types");
  CHECK(read(json).windows == std::vector<int>{0, 4, 4, 4});
  json.erase("sliding_window");
  CHECK(read(json).windows == std::vector<int>{0, 128, 128, 128});
  json.erase("layer_rope_theta");
  CHECK(read(json).layer_rotary.empty());
  CHECK(read(json).layer_turns.empty());
  json["layer_rope_theta"] = {100, 60, 30};
  CHECK(says(refusal(json), "layer_rope_theta: expected a number for each of 4 layers, found 3"));
  json["layer_rope_theta"] = {100, 0.5, 30, 30};
  CHECK(says(refusal(json), "layer_rope_theta: expected 0, or bases of 1 or more, found 0.5"));
  json["layer_rope_theta"] = {50, 0, 50, 50};
  CHECK(read(json).rotary.base == 50);
  CHECK(read(json).layer_rotary.empty());
  CHECK_FALSE(read(json).turns(1));
  json = config_of("families/granitemoe_swa");
  json.erase("shared_intermediate_size");
  CHECK(read(json).experts.shared_width == 0);
}

TEST_CASE("Cohere's Command A+ without lists has layers as its patterns say, and averages with a shared expert alone") {
  Json json = config_of("families/cohere2_moe");
  for (const char* key : {"layer_types", "mlp_layer_types", "prefix_dense_sliding_window_pattern"}) json.erase(key);
  json["num_hidden_layers"] = 6;
  json["first_k_dense_replace"] = 1;
  json["sliding_window_pattern"] = 2;
  const ModelConfig c = read(json);
  CHECK(c.windows == std::vector<int>{0, 4, 0, 4, 0, 4});
  CHECK(c.layer_turns == std::vector<bool>{true, true, false, true, false, true});
  CHECK(c.experts.layers == std::vector<bool>{false, true, true, true, true, true});
  CHECK(c.experts.scale == 0.5);
  CHECK(c.experts.shared_scale == 0.5);
  CHECK(c.dims.d_mlp == 21);
  json.erase("prefix_dense_intermediate_size");
  CHECK(read(json).dims.d_mlp == 10);
  json.erase("num_shared_experts");
  CHECK(read(json).experts.scale == 1);
  CHECK(read(json).experts.shared_width == 0);
  CHECK(read(json).norm == NormKind::layer_norm);
  json["rms_norm_eps"] = 0.1;
  CHECK(read(json).norm == NormKind::rms_norm);
  CHECK(read(json).norm_epsilon == 0.1);
  json["expert_selection_fn"] = "entmax";
  CHECK(says(refusal(json), "expert_selection_fn: expected one of softmax, sigmoid, found \"entmax\""));
  json["expert_selection_fn"] = "softmax";
  json["shared_expert_combination_strategy"] = "maximum";
  CHECK(says(refusal(json), "shared_expert_combination_strategy: expected one of sum, average"));
}

TEST_CASE("what Mellum, Hunyuan 3 and Sarvam leave out is what all their models have") {
  Json json = config_of("families/mellum");
  for (const char* key : {"head_dim", "num_key_value_heads", "layer_types", "mlp_layer_types", "norm_topk_prob",
                          "rope_parameters", "num_attention_heads"})
    json.erase(key);
  json["num_attention_heads"] = 8;
  const ModelConfig mellum = read(json);
  CHECK(mellum.dims.d_head == 128);
  CHECK(mellum.dims.kv_heads == 4);
  CHECK(mellum.windows.empty());
  CHECK(mellum.experts.renormalized);
  CHECK(mellum.experts.layers.empty());
  CHECK(mellum.rotary.base == 500000);

  json = config_of("families/hy_v3");
  for (const char* key : {"mlp_layer_types", "router_scaling_factor", "rope_parameters", "num_shared_experts"})
    json.erase(key);
  const ModelConfig hunyuan = read(json);
  CHECK(hunyuan.experts.layers == std::vector<bool>{false, true, true});
  CHECK(hunyuan.experts.scale == 2.826);
  CHECK(hunyuan.experts.shared_width == hunyuan.experts.width);
  CHECK(hunyuan.rotary.base == 11158840);

  const ModelConfig sarvam = read(config_of("families/sarvam_mla-older"));
  CHECK(sarvam.dims.q_latent == 0);
  CHECK(sarvam.experts.count == 5);
  CHECK(sarvam.experts.shared_width == 2 * sarvam.experts.width);
  CHECK(sarvam.rotary.scaling == RotaryConfig::Scaling::yarn);
  CHECK(sarvam.score_scale.has_value());
}

TEST_CASE("what is not followed of I-BERT, MVP and IQuest-Coder is refused by its key") {
  Json json = config_of("families/ibert");
  json["quant_mode"] = true;
  CHECK(says(refusal(json), "quant_mode: expected false, found true"));
  json = config_of("encoder-decoders/mvp");
  json["use_prompt"] = true;
  CHECK(says(refusal(json), "use_prompt: expected false, found true"));
  json = config_of("families/iquestcoder");
  json["use_sliding_window"] = true;
  CHECK(says(refusal(json), "use_sliding_window: expected false, found true"));
  for (const char* key : {"use_sliding_window", "head_dim", "num_key_value_heads", "num_attention_heads"})
    json.erase(key);
  json["num_attention_heads"] = 16;
  CHECK(read(json).dims.d_head == 128);
  CHECK(read(json).dims.kv_heads == 8);
}

TEST_CASE("Mistral 4 turns the share of a head that it says, and what it leaves out is what all its models have") {
  Json json = config_of("families/mistral4");
  const ModelConfig all = read(json);
  CHECK(all.rotary.width == 8);
  CHECK(all.rotary.query_growth == 0.9);
  CHECK(all.rotary.original_context == 4);
  CHECK(all.rotary.layout == RotaryLayout::interleaved);
  CHECK(all.experts.score == RouterScore::softmax);
  CHECK(all.experts.groups_kept == 2);
  for (const char* key : {"qk_nope_head_dim", "qk_rope_head_dim", "kv_lora_rank", "q_lora_rank", "n_group",
                          "topk_group", "norm_topk_prob", "num_experts_per_tok", "first_k_dense_replace"})
    json.erase(key);
  json["rope_parameters"].erase("partial_rotary_factor");
  const ModelConfig usual = read(json);
  CHECK(usual.dims.d_head == 128);
  CHECK(usual.rotary.width == 64);
  CHECK(usual.dims.kv_latent == 256);
  CHECK(usual.dims.q_latent == 1024);
  CHECK(usual.experts.per_token == 4);
  CHECK(usual.experts.layers.empty());
  CHECK(usual.experts.renormalized);
  json["rope_parameters"]["partial_rotary_factor"] = 0.25;
  CHECK(
      says(refusal(json),
           "partial_rotary_factor: expected the share that turns, qk_rope_head_dim = 64 of 128, found 32 dimensions"));
  json["rope_parameters"].erase("partial_rotary_factor");
  json["rope_interleave"] = false;
  CHECK(says(refusal(json), "rope_interleave: expected true, where queries grow (llama_4_scaling_beta), found false"));
  json["rope_interleave"] = true;
  json["rope_parameters"]["rope_type"] = "default";
  CHECK(says(refusal(json), "rope_parameters: expected yarn"));
}

TEST_CASE("MiniMax-Text-01 without a list attends in every second layer, and its numbers are 1") {
  Json json = config_of("families/minimax");
  const ModelConfig all = read(json);
  CHECK(all.attention_stream == 1.7);
  CHECK(all.state_stream == 0.6);
  CHECK(all.mlp_stream == 1.3);
  CHECK(all.multipliers.attention_out == 0.8);
  CHECK(all.dims.convolved == 72);
  CHECK(all.state_space->steady);
  for (const char* key : {"layer_types", "full_attn_alpha_factor", "mlp_beta_factor", "num_local_experts"})
    json.erase(key);
  const ModelConfig usual = read(json);
  CHECK(usual.dims.mixers ==
        std::vector<Mixer>{Mixer::attention, Mixer::state_space, Mixer::attention, Mixer::state_space});
  CHECK(usual.attention_stream == 1);
  CHECK(usual.multipliers.mlp_out == 1);
  CHECK(usual.experts.count == 8);
  json["rope_parameters"]["partial_rotary_factor"] = 0.67;
  CHECK(says(refusal(json), "partial_rotary_factor: expected 1, found 4"));
  json["rope_parameters"].erase("partial_rotary_factor");
  json["layer_types"] = {"linear_attention", "sliding_attention", "full_attention", "full_attention"};
  CHECK(says(refusal(json), "layer_types: expected one of linear_attention, full_attention"));
}

TEST_CASE("BitNet's heads are together as wide as the stream, as the norm behind them") {
  Json json = config_of("families/bitnet");
  CHECK(read(json).z_norm);
  CHECK(read(json).mlp_norm_kind == NormKind::rms_norm);
  CHECK(read(json).activation == Activation::relu2);
  json["head_dim"] = 8;
  CHECK(says(refusal(json), "head_dim: expected heads as wide as hidden_size = 24 together"));
}

TEST_CASE("DBRX whose two places say other bases of rotation is refused, and weights divided by another length") {
  Json json = config_of("families/dbrx");
  json["attn_config"]["rope_theta"] = 500000;
  CHECK(
      says(refusal(json), "attn_config: rope_theta: expected 100, as rope_theta or rope_parameters say, found 500000"));
  Json of_makers = json;  // whose files say it in one place alone
  of_makers.erase("rope_parameters");
  of_makers.erase("rope_theta");
  CHECK(read(of_makers).rotary.base == 500000);
  of_makers["attn_config"].erase("rope_theta");
  CHECK(read(of_makers).rotary.base == 10000);
  json["attn_config"]["rope_theta"] = 100;
  CHECK(read(json).clip_qkv == 0.8);
  CHECK(read(json).dims.kv_heads == 2);
  json["attn_config"]["kv_n_heads"] = 3;
  CHECK(says(refusal(json), "kv_n_heads: expected a divisor of n_heads = 4, found 3"));
  json["attn_config"].erase("kv_n_heads");
  CHECK(read(json).dims.kv_heads == 1);
  json["ffn_config"]["moe_normalize_expert_weights"] = 2;
  CHECK(says(refusal(json), "moe_normalize_expert_weights: expected 1, or null, found 2"));
  json["ffn_config"]["moe_normalize_expert_weights"] = nullptr;
  CHECK_FALSE(read(json).experts.renormalized);
  json["ffn_config"]["moe_top_k"] = 6;
  CHECK(says(refusal(json), "moe_top_k: expected at most the 5 experts, found 6"));
}

TEST_CASE("what ModernBERT writes opens, which says half of its window once more") {
  for (const char* folder : {"families/modernbert", "families/modernvbert"}) {
    CAPTURE(folder);
    const auto at = scratch_dir("later-families-written");
    write_file_atomically(at / "config.json", write_config(load_config(reference(folder))));
    CHECK(load_config(at).windows == load_config(reference(folder)).windows);
  }
}

TEST_CASE("FSMT has a vocabulary for each side, BigBird-PEGASUS sources that are short enough to be seen whole") {
  Json json = config_of("encoder-decoders/fsmt");
  CHECK(read(json).dims.vocab == 39);
  CHECK(read(json).encoder->dims.vocab == 43);
  json.erase("tie_word_embeddings");
  CHECK_FALSE(read(json).tied_embeddings);
  json.erase("scale_embedding");
  CHECK(read(json).embedding_scale == doctest::Approx(std::sqrt(18.0)));
  json = config_of("encoder-decoders/bigbird_pegasus");
  CHECK(read(json).context == 40);
  CHECK(read(json).encoder->context == 14);
  CHECK(read(json).encoder->position_tail == 26);
  json["attention_type"] = "windows";
  CHECK(says(refusal(json), "attention_type: expected \"block_sparse\" or \"original_full\", found \"windows\""));
}

TEST_CASE("these families write what they read") {
  for (const char* folder : {"families/gpt_neox_japanese",
                             "families/granite_swa",
                             "families/granite_swa-plain",
                             "families/granitemoe_swa",
                             "families/mellum",
                             "families/hy_v3",
                             "families/hy_v3-biased",
                             "families/cohere2_moe",
                             "families/cohere2_moe-sum",
                             "families/sarvam_mla",
                             "families/sarvam_mla-older",
                             "families/ibert",
                             "families/iquestcoder",
                             "families/dbrx",
                             "families/dbrx-bare",
                             "families/mistral4",
                             "families/mistral4-halves",
                             "families/minimax",
                             "families/minimax-slopes",
                             "families/bitnet",
                             "families/modernvbert",
                             "encoder-decoders/mvp",
                             "encoder-decoders/fsmt",
                             "encoder-decoders/fsmt-bare",
                             "encoder-decoders/bigbird_pegasus",
                             "encoder-decoders/bigbird_pegasus-full"}) {
    CAPTURE(folder);
    const ModelConfig first = load_config(reference(folder));
    const std::string written = write_config(first);
    const ModelConfig again = read(Json::parse(written));
    ModelConfig named = again;
    named.name = first.name, named.family = first.family, named.text_family = first.text_family;
    CHECK(write_config(named) == written);
    CHECK(extents(again.dims) == extents(first.dims));
    CHECK(again.windows == first.windows);
    CHECK(again.layer_turns == first.layer_turns);
    CHECK(again.layer_rotary == first.layer_rotary);
    CHECK(again.experts.layers == first.experts.layers);
    CHECK(again.experts.scale == first.experts.scale);
    CHECK(again.experts.shared_scale == first.experts.shared_scale);
    CHECK(again.experts.shared_width == first.experts.shared_width);
    CHECK(again.norm == first.norm);
    CHECK(again.bias.last_o == first.bias.last_o);
    CHECK(again.tied_embeddings == first.tied_embeddings);
    if (first.encoder) CHECK(extents(again.encoder->dims) == extents(first.encoder->dims));
    if (first.encoder) CHECK(again.encoder->context == first.encoder->context);
  }
}

}  // namespace headscope::later_families_test
