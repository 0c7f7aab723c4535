// Sarvam with experts (Sarvam AI, Sarvam-30B, 2026): as Llama, queries and keys normalised head by head, experts as in
// DeepSeek V3.

#include "core/base/words.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void sarvam_moe_keys(ConfigMap& keys, ModelConfig& c) {
  extents_of_width(keys, c, 64, {.usual_kv_heads = 4});
  DeepseekUsual usual{.dense_layers = 1, .experts = 128, .per_token = 6, .shared = 1, .width = 1024, .scale = 2.5};
  usual.count_key = deepseek_either(keys, "n_routed_experts", "num_experts");
  usual.shared_key = deepseek_either(keys, "n_shared_experts", "num_shared_experts");
  deepseek_experts(keys, c, usual);
  if (keys.reading())
    for (const char* of_count : {"num_experts", "num_local_experts"}) (void)keys.json().has(of_count);
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  bool normed = c.qk_norm != QkNorm::none;
  keys.flag("use_qk_norm", normed, true);
  c.qk_norm = normed ? QkNorm::per_head : QkNorm::none;
  keys.rotary(c, 8e6);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, deepseek_either(keys, "attention_bias", "use_qkv_bias"));
  c.bias.o = false;
  keys.ends(c, false);
  if (c.experts.anywhere()) deepseek_router(keys, c.experts, 1, 1, true);
}

WeightNames sarvam_moe_names(const ModelConfig& c) {
  WeightNames names = deepseek_names(c);
  names.experts.gate_up_of_all = "mlp.experts.gate_up_proj";
  names.experts.down_of_all = "mlp.experts.down_proj";
  names.experts.rows = true;
  return names;
}

WeightNames sarvam_moe_published(const ModelConfig& c) {
  WeightNames names = sarvam_moe_names(c);
  names.embedding = "word_embeddings";
  names.qkv = "attention.query_key_value", names.o = "attention.dense";
  names.q_norm = "attention.query_layernorm", names.k_norm = "attention.key_layernorm";
  names.experts.correction = "mlp.gate.expert_bias";
  return names;
}
}  // namespace

Family sarvam_moe_family();  // declared with all others in family.cpp
Family sarvam_moe_family() {
  return with_older_names(
      usual_family("sarvam_moe", "Glm4MoeForCausalLM",
                   to_say("queries and keys normalised head by head, each token through a few of many MLPs"),
                   &sarvam_moe_keys, &sarvam_moe_names),
      "word_embeddings.weight", "embed_tokens.weight", &sarvam_moe_published);
}

}  // namespace headscope
