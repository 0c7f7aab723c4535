#include "core/model/formats/gguf_architectures.h"

#include "core/model/formats/gguf_tables.h"

namespace headscope {

namespace {

using namespace gguf_tables;

const Keys gpt2_keys{
    {"block_count", "n_layer"},         {"context_length", "n_positions"},
    {"embedding_length", "n_embd"},     {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"}, {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
};
Tensors gpt2_tensors(Turn turn) {
  return {{"token_embd", "transformer.wte"},
          {"position_embd", "transformer.wpe"},
          {"output_norm", "transformer.ln_f"},
          {"output", "lm_head"},
          {"blk.#.attn_norm", "transformer.h.#.ln_1"},
          {"blk.#.attn_qkv", "transformer.h.#.attn.c_attn", turn},
          {"blk.#.attn_output", "transformer.h.#.attn.c_proj", turn},
          {"blk.#.ffn_norm", "transformer.h.#.ln_2"},
          {"blk.#.ffn_up", "transformer.h.#.mlp.c_fc", turn},
          {"blk.#.ffn_down", "transformer.h.#.mlp.c_proj", turn}};
}

/// Queries, keys and values side by side, which these families keep head by head.
Tensors neox_like_tensors(const std::string_view (&names)[11]) {
  return {{"token_embd", names[0]},
          {"output_norm", names[1]},
          {"output", names[2]},
          {"blk.#.attn_norm", names[3]},
          {"blk.#.attn_qkv", names[4], Turn::by_group},
          {"blk.#.attn_output", names[5]},
          {"blk.#.ffn_up", names[6]},
          {"blk.#.ffn_down", names[7]},
          {names[8].empty() ? "blk.#.none" : names[8], names[9]},
          {names[10].empty() ? "blk.#.none" : "token_embd_norm", names[10]}};
}
const Tensors gpt_neox_tensors = neox_like_tensors(
    {"gpt_neox.embed_in", "gpt_neox.final_layer_norm", "embed_out", "gpt_neox.layers.#.input_layernorm",
     "gpt_neox.layers.#.attention.query_key_value", "gpt_neox.layers.#.attention.dense",
     "gpt_neox.layers.#.mlp.dense_h_to_4h", "gpt_neox.layers.#.mlp.dense_4h_to_h", "blk.#.ffn_norm",
     "gpt_neox.layers.#.post_attention_layernorm", ""});
Tensors falcon_tensors(std::string_view first_norm, std::string_view second_gguf) {
  return neox_like_tensors({"transformer.word_embeddings", "transformer.ln_f", "lm_head", first_norm,
                            "transformer.h.#.self_attention.query_key_value", "transformer.h.#.self_attention.dense",
                            "transformer.h.#.mlp.dense_h_to_4h", "transformer.h.#.mlp.dense_4h_to_h", second_gguf,
                            "transformer.h.#.ln_attn", ""});
}
const Tensors bloom_tensors =
    neox_like_tensors({"transformer.word_embeddings", "transformer.ln_f", "lm_head", "transformer.h.#.input_layernorm",
                       "transformer.h.#.self_attention.query_key_value", "transformer.h.#.self_attention.dense",
                       "transformer.h.#.mlp.dense_h_to_4h", "transformer.h.#.mlp.dense_4h_to_h", "blk.#.ffn_norm",
                       "transformer.h.#.post_attention_layernorm", "transformer.word_embeddings_layernorm"});

// ---- what follows from the file besides

/// llama.cpp divides scores by √d_head, but in the largest model, known by its layers, by √(d_model ÷ heads).
void gemma_scale(json& config, std::int64_t largest) {
  const std::int64_t heads = whole(config, "num_attention_heads"), width = whole(config, "hidden_size"),
                     d_head = config.contains("head_dim") ? whole(config, "head_dim")
                              : heads > 0                 ? width / heads
                                                          : 0;
  config["query_pre_attn_scalar"] = whole(config, "num_hidden_layers") == largest && heads > 0 ? width / heads : d_head;
}
void gemma2_more(const GgufFile&, json& config) {
  gemma_scale(config, 46);
}
void gemma3_more(const GgufFile&, json& config) {
  gemma_scale(config, 62);
}

void falcon_more(const GgufFile& file, json& config) {
  const bool two_norms = file.contains("blk.0.attn_norm_2.weight");
  const bool grouped = two_norms || whole(config, "num_kv_heads") > 1;
  config["new_decoder_architecture"] = grouped;
  if (grouped) config["num_ln_in_parallel_attn"] = two_norms ? 2 : 1;
  config["multi_query"] = true;
}

void bloom_more(const GgufFile& file, json& config) {
  expect(file, config, "feed_forward_length", 4 * whole(config, "hidden_size"), "four times the width");
}

void mpt_more(const GgufFile& file, json& config) {
  expect(file, config, "feed_forward_length", 4 * whole(config, "d_model"), "four times the width");
  json attention = {{"alibi", true}};
  if (const auto found = config.find("max_alibi_bias"); found != config.end()) {
    attention["alibi"] = *found != json(0) && *found != json(0.0);
    attention["alibi_bias_max"] = found->is_number() ? json(static_cast<std::int64_t>(found->get<double>())) : *found;
  }
  if (const auto found = config.find("clamp_kqv"); found != config.end()) attention["clip_qkv"] = *found;
  config["attn_config"] = attention;
}

void starcoder_more(const GgufFile& file, json& config) {
  expect(file, config, "head_count_kv", 1, "one key head for all, as StarCoder has");
  config["multi_query"] = true;
}

/// Beside the usual ones, the old form of Phi 2 has one matrix for queries, keys and values.
const Tensors phi2_tensors{{"token_embd", "model.embed_tokens"},
                           {"output_norm", "model.final_layernorm"},
                           {"output", "lm_head"},
                           {"blk.#.attn_norm", "model.layers.#.input_layernorm"},
                           {"blk.#.attn_q", "model.layers.#.self_attn.q_proj"},
                           {"blk.#.attn_k", "model.layers.#.self_attn.k_proj"},
                           {"blk.#.attn_v", "model.layers.#.self_attn.v_proj"},
                           {"blk.#.attn_qkv", "model.layers.#.self_attn.q_proj", Turn::first_third},
                           {"blk.#.attn_qkv", "model.layers.#.self_attn.k_proj", Turn::second_third},
                           {"blk.#.attn_qkv", "model.layers.#.self_attn.v_proj", Turn::last_third},
                           {"blk.#.attn_output", "model.layers.#.self_attn.dense"},
                           {"blk.#.ffn_up", "model.layers.#.mlp.fc1"},
                           {"blk.#.ffn_down", "model.layers.#.mlp.fc2"}};
const Tensors phi3_tensors{{"token_embd", "model.embed_tokens"},
                           {"output_norm", "model.norm"},
                           {"output", "lm_head"},
                           {"blk.#.attn_norm", "model.layers.#.input_layernorm"},
                           {"blk.#.attn_qkv", "model.layers.#.self_attn.qkv_proj"},
                           {"blk.#.attn_output", "model.layers.#.self_attn.o_proj"},
                           {"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm"},
                           {"blk.#.ffn_up", "model.layers.#.mlp.gate_up_proj"},
                           {"blk.#.ffn_down", "model.layers.#.mlp.down_proj"}};
const Tensors mpt_tensors{{"token_embd", "transformer.wte"},
                          {"output_norm", "transformer.norm_f"},
                          {"output", "lm_head"},
                          {"blk.#.attn_norm", "transformer.blocks.#.norm_1"},
                          {"blk.#.attn_qkv", "transformer.blocks.#.attn.Wqkv"},
                          {"blk.#.attn_output", "transformer.blocks.#.attn.out_proj"},
                          {"blk.#.ffn_norm", "transformer.blocks.#.norm_2"},
                          {"blk.#.ffn_up", "transformer.blocks.#.ffn.up_proj"},
                          {"blk.#.ffn_down", "transformer.blocks.#.ffn.down_proj"}};
Tensors starcoder2_tensors() {
  Tensors out = usual_tensors();
  for (GgufTensorRule& rule : out) {
    if (rule.gguf == "blk.#.ffn_up") rule.family = "model.layers.#.mlp.c_fc";
    if (rule.gguf == "blk.#.ffn_down") rule.family = "model.layers.#.mlp.c_proj";
  }
  out.push_back(second_norm);
  return out;
}
const Tensors glm4_tensors{{"token_embd", "model.embed_tokens"},
                           {"output_norm", "model.norm"},
                           {"output", "lm_head"},
                           {"blk.#.attn_norm", "model.layers.#.input_layernorm"},
                           {"blk.#.attn_q", "model.layers.#.self_attn.q_proj"},
                           {"blk.#.attn_k", "model.layers.#.self_attn.k_proj"},
                           {"blk.#.attn_v", "model.layers.#.self_attn.v_proj"},
                           {"blk.#.attn_output", "model.layers.#.self_attn.o_proj"},
                           {"blk.#.post_attention_norm", "model.layers.#.post_self_attn_layernorm"},
                           {"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm"},
                           {"blk.#.ffn_up", "model.layers.#.mlp.gate_up_proj"},
                           {"blk.#.ffn_down", "model.layers.#.mlp.down_proj"},
                           {"blk.#.post_ffw_norm", "model.layers.#.post_mlp_layernorm"}};

const Tensors exaone_tensors{{"token_embd", "transformer.wte"},
                             {"output_norm", "transformer.ln_f"},
                             {"output", "lm_head"},
                             {"blk.#.attn_norm", "transformer.h.#.ln_1"},
                             {"blk.#.attn_q", "transformer.h.#.attn.attention.q_proj"},
                             {"blk.#.attn_k", "transformer.h.#.attn.attention.k_proj"},
                             {"blk.#.attn_v", "transformer.h.#.attn.attention.v_proj"},
                             {"blk.#.attn_output", "transformer.h.#.attn.attention.out_proj"},
                             {"blk.#.ffn_norm", "transformer.h.#.ln_2"},
                             {"blk.#.ffn_gate", "transformer.h.#.mlp.c_fc_0"},
                             {"blk.#.ffn_up", "transformer.h.#.mlp.c_fc_1"},
                             {"blk.#.ffn_down", "transformer.h.#.mlp.c_proj"}};

/// As far as files have it: layers with a window, in a list of their own, are not read.
void exaone4_more(const GgufFile&, json& config) {
  config["sliding_window"] = nullptr;
}

/// The size of YaRN stands in the file as llama.cpp needs it; queries that grow under names of its own.
void mistral3_more(const GgufFile&, json& config) {
  if (!config.contains("rope_scaling")) return;
  json& scaling = config["rope_scaling"];
  if (const auto m = config.find("yarn_log_multiplier"); m != config.end())
    scaling["mscale"] = scaling["mscale_all_dim"] = *m;
  for (const char* key : {"beta_fast", "beta_slow"})
    if (const auto found = config.find(key); found != config.end()) scaling[key] = *found;
  if (const auto beta = config.find("temperature_scale"); beta != config.end()) scaling["llama_4_scaling_beta"] = *beta;
}

const Keys falcon_keys{{"block_count", "num_hidden_layers"},
                       {"context_length", "max_position_embeddings"},
                       {"embedding_length", "hidden_size"},
                       {"feed_forward_length", "ffn_hidden_size"},
                       {"attention.head_count", "num_attention_heads"},
                       {"attention.head_count_kv", "num_kv_heads"},
                       {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
                       {"rope.freq_base", "rope_theta"}};
const Keys falcon_biases{{"blk.0.attn_qkv.bias", "bias"}};

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() {
  static const std::vector<GgufArchitecture> all = [] {
    std::vector<GgufArchitecture> found{
        {"llama", "llama", usual_keys("rms_norm_eps"), with_second_norm(usual_tensors(Turn::rotary_pairs)),
         llama_biases},
        {"qwen2", "qwen2", usual_keys("rms_norm_eps"), with_second_norm(usual_tensors())},
        {"qwen3", "qwen3", usual_keys("rms_norm_eps"), joined(with_second_norm(usual_tensors()), qk_norms),
         attention_bias},
        {"gpt2", "gpt2", gpt2_keys, gpt2_tensors(Turn::transposed)},
        {"gemma", "gemma", usual_keys("rms_norm_eps"),
         joined(usual_tensors(Turn::none, Turn::plus_one),
                {{"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm", Turn::plus_one}})},
        {"gemma2",
         "gemma2",
         joined(usual_keys("rms_norm_eps"), {{"attn_logit_softcapping", "attn_logit_softcapping"},
                                             {"final_logit_softcapping", "final_logit_softcapping"},
                                             {"attention.sliding_window", "sliding_window"}}),
         joined(usual_tensors(Turn::none, Turn::plus_one), gemma2_norms),
         {},
         {},
         &gemma2_more},
        {"gemma3",
         "gemma3_text",
         joined(usual_keys("rms_norm_eps"), {{"final_logit_softcapping", "final_logit_softcapping"},
                                             {"attention.sliding_window", "sliding_window"},
                                             {"attention.sliding_window_pattern", "sliding_window_pattern"},
                                             {"rope.freq_base_swa", "rope_local_base_freq"}}),
         joined(joined(usual_tensors(Turn::none, Turn::plus_one), gemma2_norms),
                {{"blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm", Turn::plus_one},
                 {"blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm", Turn::plus_one}}),
         {},
         {},
         &gemma3_more},
        {"phi2", "phi", layer_norm_keys("layer_norm_eps"), phi2_tensors, {}, "partial_rotary_factor"},
        {"phi3",
         "phi3",
         joined(usual_keys("rms_norm_eps"), {{"attention.sliding_window", "sliding_window"}}),
         phi3_tensors,
         {},
         "partial_rotary_factor"},
        {"gptneox",
         "gpt_neox",
         {{"block_count", "num_hidden_layers"},
          {"context_length", "max_position_embeddings"},
          {"embedding_length", "hidden_size"},
          {"feed_forward_length", "intermediate_size"},
          {"attention.head_count", "num_attention_heads"},
          {"attention.layer_norm_epsilon", "layer_norm_eps"},
          {"use_parallel_residual", "use_parallel_residual"},
          {"rope.freq_base", "rotary_emb_base"}},
         gpt_neox_tensors,
         {{"blk.0.attn_qkv.bias", "attention_bias"}},
         "rotary_pct"},
        {"falcon",
         "falcon",
         falcon_keys,
         falcon_tensors("transformer.h.#.ln_mlp", "blk.#.attn_norm_2"),
         falcon_biases,
         {},
         &falcon_more,
         false,
         "blk.0.attn_norm_2.weight"},
        {"falcon",
         "falcon",
         falcon_keys,
         falcon_tensors("transformer.h.#.input_layernorm", ""),
         falcon_biases,
         {},
         &falcon_more},
        {"bloom",
         "bloom",
         {{"block_count", "n_layer"},
          {"context_length", "seq_length"},
          {"embedding_length", "hidden_size"},
          {"feed_forward_length", "feed_forward_length"},
          {"attention.head_count", "n_head"},
          {"attention.layer_norm_epsilon", "layer_norm_epsilon"}},
         bloom_tensors,
         {},
         {},
         &bloom_more},
        {"mpt",
         "mpt",
         {{"block_count", "n_layers"},
          {"context_length", "max_seq_len"},
          {"embedding_length", "d_model"},
          {"feed_forward_length", "feed_forward_length"},
          {"attention.head_count", "n_heads"},
          {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
          {"attention.clamp_kqv", "clamp_kqv"},
          {"attention.max_alibi_bias", "max_alibi_bias"}},
         mpt_tensors,
         {},
         {},
         &mpt_more},
        {"starcoder",
         "gpt_bigcode",
         joined(gpt2_keys, {{"attention.head_count_kv", "head_count_kv"}}),
         gpt2_tensors(Turn::none),
         {},
         {},
         &starcoder_more},
        {"starcoder2",
         "starcoder2",
         joined(layer_norm_keys("norm_epsilon"), {{"attention.sliding_window", "sliding_window"}}),
         starcoder2_tensors(),
         {{"blk.0.attn_q.bias", "use_bias"}}},
        {"stablelm",
         "stablelm",
         joined(layer_norm_keys("layer_norm_eps"), {{"use_parallel_residual", "use_parallel_residual"}}),
         with_second_norm(usual_tensors()),
         {{"blk.0.attn_q.bias", "use_qkv_bias"}},
         "partial_rotary_factor"},
        {"olmo", "olmo", joined(layer_norm_keys("layer_norm_epsilon"), {{"attention.clamp_kqv", "clip_qkv"}}),
         usual_tensors(Turn::rotary_pairs), attention_bias},
        {"olmo2", "olmo2", usual_keys("rms_norm_eps"), joined(joined(usual_tensors(), qk_norms), norms_behind),
         attention_bias},
        {"command-r", "cohere", joined(layer_norm_keys("layer_norm_eps"), {{"logit_scale", "logit_scale"}}),
         joined(usual_tensors(), qk_norms), joined(attention_bias, {{"blk.0.attn_q_norm.weight", "use_qk_norm"}})},
        {"granite", "granite", joined(usual_keys("rms_norm_eps"), granite_numbers),
         with_second_norm(usual_tensors(Turn::rotary_pairs)), llama_biases},
        {"cohere2", "cohere2",
         joined(layer_norm_keys("layer_norm_eps"),
                {{"logit_scale", "logit_scale"}, {"attention.sliding_window", "sliding_window"}}),
         usual_tensors(), attention_bias},
        {"glm4", "glm4", usual_keys("rms_norm_eps"), glm4_tensors, attention_bias, "partial_rotary_factor"},
        {"seed_oss", "seed_oss", usual_keys("rms_norm_eps"),
         joined(usual_tensors(), {{"blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm"}}),
         joined(llama_biases, {{"blk.0.attn_output.bias", "attention_out_bias"}})},
        {"ernie4_5",
         "ernie4_5",
         usual_keys("rms_norm_eps"),
         with_second_norm(usual_tensors()),
         {{"blk.0.attn_q.bias", "use_bias"}}},
        {"smollm3", "smollm3", usual_keys("rms_norm_eps"), with_second_norm(usual_tensors(Turn::rotary_pairs)),
         llama_biases},
        {"exaone", "exaone", usual_keys("rms_norm_eps"), exaone_tensors},
        {"exaone4",
         "exaone4",
         usual_keys("rms_norm_eps"),
         joined(joined(usual_tensors(), qk_norms), norms_behind),
         {},
         {},
         &exaone4_more},
        {"arcee", "arcee", usual_keys("rms_norm_eps"), with_second_norm(usual_tensors(Turn::rotary_pairs)),
         llama_biases},
        {"nemotron", "nemotron", layer_norm_keys("norm_eps"),
         joined(usual_tensors(Turn::none, Turn::plus_one),
                {{"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm", Turn::plus_one}}),
         llama_biases, "partial_rotary_factor"},
        {"hunyuan-dense", "hunyuan_v1_dense", usual_keys("rms_norm_eps"),
         joined(with_second_norm(usual_tensors()), {{"blk.#.attn_q_norm", "model.layers.#.self_attn.query_layernorm"},
                                                    {"blk.#.attn_k_norm", "model.layers.#.self_attn.key_layernorm"}}),
         attention_bias},
        {"mistral3",
         "ministral3",
         joined(usual_keys("rms_norm_eps"), {{"attention.temperature_scale", "temperature_scale"},
                                             {"rope.scaling.yarn_beta_fast", "beta_fast"},
                                             {"rope.scaling.yarn_beta_slow", "beta_slow"},
                                             {"rope.scaling.yarn_log_multiplier", "yarn_log_multiplier"}}),
         with_second_norm(usual_tensors(Turn::rotary_pairs)),
         {},
         {},
         &mistral3_more},
        {"qwen2vl", "qwen2", usual_keys("rms_norm_eps"), with_second_norm(usual_tensors())},
        {"qwen3vl", "qwen3", usual_keys("rms_norm_eps"), joined(with_second_norm(usual_tensors()), qk_norms),
         attention_bias},
    };
    const std::vector<GgufArchitecture> experts = expert_architectures();
    found.insert(found.begin(), experts.front());
    found.insert(found.end(), experts.begin() + 1, experts.end());
    return found;
  }();
  return all;
}

}  // namespace headscope
