// StableLM (Bellagente et al., Stable LM 2 1.6B, 2024): as Llama with LayerNorms, a quarter of every head rotated, and
// biases on queries, keys and values where the file says so;
// norms of queries and keys with gains of every head likewise (12B).

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void stablelm_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-5);
  keys.rotary(c, 10000, 0.25);
  keys.gated_mlp("hidden_act", c, "silu");
  bool biased = c.bias.q;
  keys.flag("use_qkv_bias", biased, false);
  c.bias = BiasSet::none();
  c.bias.norm = true;
  c.bias.q = c.bias.k = c.bias.v = biased;
  keys.flag("use_parallel_residual", c.dims.parallel, false);
  c.shared_norm = c.dims.parallel;
  bool normed = c.qk_norm != QkNorm::none;
  keys.flag("qk_layernorm", normed, false);
  c.qk_norm = normed ? QkNorm::per_head : QkNorm::none;
  c.qk_norm_by_head = normed;
  keys.ends(c, false);
}

WeightNames stablelm_names(const ModelConfig&) {
  WeightNames names;
  names.q_norm = "self_attn.q_layernorm";
  names.k_norm = "self_attn.k_layernorm";
  names.head_by_head = "norms.";
  return names;
}
}  // namespace

Family stablelm_family();  // declared with all others in family.cpp
Family stablelm_family() {
  return usual_family("stablelm", "StableLmForCausalLM",
                      to_say("LayerNorm, rotary in part, gated MLP, biases on queries, keys and values"),
                      &stablelm_keys, &stablelm_names);
}

}  // namespace headscope
