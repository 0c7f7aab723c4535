// Persimmon (Adept AI, 2023): LayerNorms, of queries and keys too, half of every head rotated, an MLP without gate
// behind a squared ReLU.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void persimmon_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.kv_heads = "", .d_head = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-5);
  keys.rotary(c, 10000, 0.5);
  keys.activation("hidden_act", c.activation, "relu2");
  bool normed = c.qk_norm != QkNorm::none;
  keys.flag("qk_layernorm", normed, true);
  c.qk_norm = normed ? QkNorm::per_head : QkNorm::none;
  c.bias.qk_norm = normed;
  keys.ends(c, false);
}

WeightNames persimmon_names(const ModelConfig&) {
  WeightNames names;
  names.qkv = "self_attn.query_key_value";
  names.fused = FusedQkv::by_group;
  names.o = "self_attn.dense";
  names.q_norm = "self_attn.q_layernorm";
  names.k_norm = "self_attn.k_layernorm";
  names.up = "mlp.dense_h_to_4h";
  names.down = "mlp.dense_4h_to_h";
  names.final_norm = "final_layernorm";
  return names;
}
}  // namespace

Family persimmon_family();  // declared with all others in family.cpp
Family persimmon_family() {
  return usual_family("persimmon", "PersimmonForCausalLM",
                      to_say("LayerNorm on queries and keys too, rotary in part, a squared ReLU"), &persimmon_keys,
                      &persimmon_names);
}

}  // namespace headscope
