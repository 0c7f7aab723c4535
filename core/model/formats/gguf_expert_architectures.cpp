#include "core/model/formats/gguf_tables.h"

namespace headscope::gguf_tables {

namespace {

Tensors experts(std::string_view router = "model.layers.#.mlp.gate") {
  return {{"blk.#.ffn_gate_inp", router},
          {"blk.#.ffn_gate_exps", "model.layers.#.mlp.experts.*.gate_proj"},
          {"blk.#.ffn_up_exps", "model.layers.#.mlp.experts.*.up_proj"},
          {"blk.#.ffn_down_exps", "model.layers.#.mlp.experts.*.down_proj"}};
}
/// Mixtral's, of which older files have a tensor for each expert.
const Tensors mixtral_experts{{"blk.#.ffn_gate_inp", "model.layers.#.block_sparse_moe.gate"},
                              {"blk.#.ffn_gate_exps", "model.layers.#.block_sparse_moe.experts.*.w1"},
                              {"blk.#.ffn_up_exps", "model.layers.#.block_sparse_moe.experts.*.w3"},
                              {"blk.#.ffn_down_exps", "model.layers.#.block_sparse_moe.experts.*.w2"},
                              {"blk.#.ffn_gate.*", "model.layers.#.block_sparse_moe.experts.*.w1"},
                              {"blk.#.ffn_up.*", "model.layers.#.block_sparse_moe.experts.*.w3"},
                              {"blk.#.ffn_down.*", "model.layers.#.block_sparse_moe.experts.*.w2"}};
/// Those that take every token, and the correction of the router.
const Tensors shared_experts{
    {"blk.#.ffn_gate_shexp", "model.layers.#.mlp.shared_experts.gate_proj"},
    {"blk.#.ffn_up_shexp", "model.layers.#.mlp.shared_experts.up_proj"},
    {"blk.#.ffn_down_shexp", "model.layers.#.mlp.shared_experts.down_proj"},
    {"blk.#.exp_probs_b", "model.layers.#.mlp.gate.e_score_correction_bias", Turn::none, true}};
const Tensors granitemoe_experts{{"blk.#.ffn_gate_inp", "model.layers.#.block_sparse_moe.router.layer"},
                                 {"blk.#.ffn_gate_exps", "model.layers.#.block_sparse_moe.experts.*.gate_proj"},
                                 {"blk.#.ffn_up_exps", "model.layers.#.block_sparse_moe.experts.*.up_proj"},
                                 {"blk.#.ffn_down_exps", "model.layers.#.block_sparse_moe.experts.*.down_proj"}};
const Tensors deepseek_tensors{{"blk.#.attn_q_a", "model.layers.#.self_attn.q_a_proj"},
                               {"blk.#.attn_q_a_norm", "model.layers.#.self_attn.q_a_layernorm"},
                               {"blk.#.attn_q_b", "model.layers.#.self_attn.q_b_proj"},
                               {"blk.#.attn_kv_a_mqa", "model.layers.#.self_attn.kv_a_proj_with_mqa"},
                               {"blk.#.attn_kv_a_norm", "model.layers.#.self_attn.kv_a_layernorm"},
                               {"blk.#.attn_kv_b", "model.layers.#.self_attn.kv_b_proj"},
                               {"blk.#.attn_k_b", "model.layers.#.self_attn.kv_b_proj", Turn::keys_and_values},
                               {"blk.#.attn_v_b", ""}};
Keys expert_counts(std::string_view count) {
  return {{"expert_count", count}, {"expert_used_count", "num_experts_per_tok"}};
}

/// Of Qwen 1.5, weighed by a gate of its own.
const Tensors shared_expert{{"blk.#.ffn_gate_shexp", "model.layers.#.mlp.shared_expert.gate_proj"},
                            {"blk.#.ffn_up_shexp", "model.layers.#.mlp.shared_expert.up_proj"},
                            {"blk.#.ffn_down_shexp", "model.layers.#.mlp.shared_expert.down_proj"},
                            {"blk.#.ffn_gate_inp_shexp", "model.layers.#.mlp.shared_expert_gate"}};

/// llama.cpp divides the weights of those that take a token by their sum; the file does not say it.
void qwen3_moe_more(const GgufFile&, json& config) {
  config["norm_topk_prob"] = true;
}

void gpt_oss_more(const GgufFile& file, json& config) {
  expect(file, config, "expert_feed_forward_length", whole(config, "intermediate_size"), "as feed_forward_length");
  if (config.contains("rope_scaling")) config["rope_scaling"]["truncate"] = false;  // as the published configuration
}

void olmoe_more(const GgufFile& file, json& config) {
  expect(file, config, "expert_feed_forward_length", whole(config, "intermediate_size"), "as feed_forward_length");
}

constexpr std::int64_t sigmoid_gating = 2;

void dots1_more(const GgufFile& file, json& config) {
  expect(file, config, "expert_gating_func", sigmoid_gating, "sigmoids, as dots.llm1 has");
  config["sliding_window"] = nullptr;
}

void glm4_moe_more(const GgufFile& file, json& config) {
  expect(file, config, "expert_gating_func", sigmoid_gating, "sigmoids, as GLM-4.5 has");
  config["use_qk_norm"] = file.contains("blk.0.attn_q_norm.weight");
  // Layers behind the last predict further tokens; block_count counts them.
  config["num_hidden_layers"] = whole(config, "num_hidden_layers") - whole(config, "nextn_predict_layers");
}

void qwen2_moe_more(const GgufFile&, json& config) {
  config["norm_topk_prob"] = false;
}

/// DeepSeek V2 and V3 are one architecture there, told apart by how weights are made of logits. Newer files say widths
/// of a head in keys of their own, since for llama.cpp the latent is a key.
void deepseek_more(const GgufFile&, json& config) {
  const std::int64_t heads = whole(config, "num_attention_heads"), experts = whole(config, "n_routed_experts");
  const bool newer = config.contains("key_length_mla");
  config["num_key_value_heads"] = heads;
  config["qk_nope_head_dim"] =
      whole(config, newer ? "key_length_mla" : "key_length") - whole(config, "qk_rope_head_dim");
  config["v_head_dim"] = whole(config, newer ? "value_length_mla" : "value_length");
  if (!config.contains("q_lora_rank")) config["q_lora_rank"] = nullptr;
  if (!config.contains("n_shared_experts")) config["n_shared_experts"] = nullptr;
  if (const auto m = config.find("yarn_log_multiplier"); m != config.end() && config.contains("rope_scaling"))
    config["rope_scaling"]["mscale"] = config["rope_scaling"]["mscale_all_dim"] = 10 * m->get<double>();
  if (whole(config, "expert_gating_func") != sigmoid_gating) {
    if (experts == 160 && !config.contains("n_group")) {  // the published V2, whose older files leave it out
      config["n_group"] = 8;
      config["topk_group"] = 3;
    }
    config["topk_method"] = whole(config, "n_group") > 1 ? "group_limited_greedy" : "greedy";
    return;
  }
  config["model_type"] = "deepseek_v3";
  if (!config.contains("norm_topk_prob")) config["norm_topk_prob"] = false;
  if (config.contains("n_group")) return;
  const bool published = experts == 256;  // V3 and R1, whose older files leave it out
  config["n_group"] = published ? 8 : 1;
  config["topk_group"] = published ? 4 : 1;
}
const Keys deepseek_gguf_keys{{"block_count", "num_hidden_layers"},
                              {"context_length", "max_position_embeddings"},
                              {"embedding_length", "hidden_size"},
                              {"feed_forward_length", "intermediate_size"},
                              {"attention.head_count", "num_attention_heads"},
                              {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
                              {"attention.q_lora_rank", "q_lora_rank"},
                              {"attention.kv_lora_rank", "kv_lora_rank"},
                              {"attention.key_length", "key_length"},
                              {"attention.value_length", "value_length"},
                              {"attention.key_length_mla", "key_length_mla"},
                              {"attention.value_length_mla", "value_length_mla"},
                              {"rope.freq_base", "rope_theta"},
                              {"rope.dimension_count", "qk_rope_head_dim"},
                              {"rope.scaling.yarn_log_multiplier", "yarn_log_multiplier"},
                              {"leading_dense_block_count", "first_k_dense_replace"},
                              {"expert_feed_forward_length", "moe_intermediate_size"},
                              {"expert_shared_count", "n_shared_experts"},
                              {"expert_weights_scale", "routed_scaling_factor"},
                              {"expert_weights_norm", "norm_topk_prob"},
                              {"expert_gating_func", "expert_gating_func"},
                              {"expert_group_count", "n_group"},
                              {"expert_group_used_count", "topk_group"}};

}  // namespace

std::vector<GgufArchitecture> expert_architectures() {
  return {
      {"llama",
       "mixtral",
       joined(usual_keys("rms_norm_eps"), expert_counts("num_local_experts")),
       joined(with_second_norm(usual_tensors(Turn::rotary_pairs)), mixtral_experts),
       {},
       {},
       nullptr,
       false,
       "blk.0.ffn_gate_inp.weight"},
      {"qwen3moe",
       "qwen3_moe",
       joined(joined(usual_keys("rms_norm_eps"), expert_counts("num_experts")),
              {{"expert_feed_forward_length", "moe_intermediate_size"}}),
       joined(joined(with_second_norm(usual_tensors()), qk_norms), experts()),
       attention_bias,
       {},
       &qwen3_moe_more},
      {"olmoe",
       "olmoe",
       joined(joined(usual_keys("rms_norm_eps"), expert_counts("num_experts")),
              {{"attention.clamp_kqv", "clip_qkv"}, {"expert_feed_forward_length", "expert_feed_forward_length"}}),
       joined(joined(with_second_norm(usual_tensors()), qk_norms), experts()),
       attention_bias,
       {},
       &olmoe_more},
      {"gpt-oss",
       "gpt_oss",
       joined(joined(usual_keys("rms_norm_eps"), expert_counts("num_local_experts")),
              {{"attention.sliding_window", "sliding_window"},
               {"expert_feed_forward_length", "expert_feed_forward_length"}}),
       joined(joined(usual_tensors(), experts("model.layers.#.mlp.router")),
              {{"blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm"},
               {"blk.#.attn_sinks", "model.layers.#.self_attn.sinks", Turn::none, true}}),
       attention_bias,
       {},
       &gpt_oss_more},
      {"deepseek2",
       "deepseek_v2",
       joined(deepseek_gguf_keys, expert_counts("n_routed_experts")),
       joined(joined(joined(with_second_norm(usual_tensors()), experts()), shared_experts), deepseek_tensors),
       {},
       {},
       &deepseek_more,
       true},
      {"qwen2moe",
       "qwen2_moe",
       joined(joined(usual_keys("rms_norm_eps"), expert_counts("num_experts")),
              {{"expert_feed_forward_length", "moe_intermediate_size"},
               {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}}),
       joined(joined(with_second_norm(usual_tensors()), experts()), shared_expert),
       {{"blk.0.attn_q.bias", "qkv_bias"}},
       {},
       &qwen2_moe_more},
      {"glm4moe", "glm4_moe",
       joined(joined(usual_keys("rms_norm_eps"), expert_counts("n_routed_experts")),
              {{"leading_dense_block_count", "first_k_dense_replace"},
               {"expert_feed_forward_length", "moe_intermediate_size"},
               {"expert_shared_count", "n_shared_experts"},
               {"expert_weights_scale", "routed_scaling_factor"},
               {"expert_weights_norm", "norm_topk_prob"},
               {"expert_gating_func", "expert_gating_func"},
               {"nextn_predict_layers", "nextn_predict_layers"}}),
       joined(joined(joined(joined(usual_tensors(), qk_norms), experts()), shared_experts),
              {{"blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm"}}),
       attention_bias, "partial_rotary_factor", &glm4_moe_more},
      {"ernie4_5-moe",
       "ernie4_5_moe",
       joined(joined(usual_keys("rms_norm_eps"), {{"expert_count", "moe_num_experts"}, {"expert_used_count", "moe_k"}}),
              {{"expert_feed_forward_length", "moe_intermediate_size"},
               {"expert_shared_count", "moe_num_shared_experts"},
               {"leading_dense_block_count", "moe_layer_start_index"},
               {"interleave_moe_layer_step", "moe_layer_interval"}}),
       joined(joined(with_second_norm(usual_tensors()), experts()),
              {shared_experts[0],
               shared_experts[1],
               shared_experts[2],
               {"blk.#.exp_probs_b", "model.layers.#.mlp.moe_statics.e_score_correction_bias", Turn::row, true}}),
       {{"blk.0.attn_q.bias", "use_bias"}}},
      {"granitemoe", "granitemoe",
       joined(joined(usual_keys("rms_norm_eps"), granite_numbers), expert_counts("num_local_experts")),
       joined(with_second_norm(usual_tensors(Turn::rotary_pairs)), granitemoe_experts), attention_bias},
      {"dots1",
       "dots1",
       joined(joined(usual_keys("rms_norm_eps"), expert_counts("n_routed_experts")),
              {{"leading_dense_block_count", "first_k_dense_replace"},
               {"expert_feed_forward_length", "moe_intermediate_size"},
               {"expert_shared_count", "n_shared_experts"},
               {"expert_weights_scale", "routed_scaling_factor"},
               {"expert_weights_norm", "norm_topk_prob"},
               {"expert_gating_func", "expert_gating_func"}}),
       joined(joined(joined(with_second_norm(usual_tensors()), qk_norms), experts()), shared_experts),
       attention_bias,
       {},
       &dots1_more}};
}

}  // namespace headscope::gguf_tables
