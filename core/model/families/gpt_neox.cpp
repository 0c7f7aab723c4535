// GPT-NeoX (Black et al., GPT-NeoX-20B, 2022) and Pythia (Biderman et al., 2023): attention and MLP read the same
// stream through a norm each, a quarter of every head is rotated, queries, keys and values are stored head by head.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void gpt_neox_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.kv_heads = "", .d_head = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-5);
  keys.flag("use_parallel_residual", c.dims.parallel, true);
  keys.rotary(c, 10000, 0.25, "rotary_pct", "rotary_emb_base");
  keys.activation("hidden_act", c.activation, "gelu");
  keys.flag("attention_bias", c.bias.q, true);
  c.bias.k = c.bias.v = c.bias.o = c.bias.q;
  keys.ends(c, false);
}

WeightNames gpt_neox_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {"gpt_neox.", ""};
  names.embedding = "embed_in";
  names.qkv = "attention.query_key_value";
  names.fused = FusedQkv::by_group;
  names.o = "attention.dense";
  names.up = "mlp.dense_h_to_4h";
  names.down = "mlp.dense_4h_to_h";
  names.final_norm = "final_layer_norm";
  names.unembedding = "embed_out";
  names.unembedding_too = "lm_head";
  names.ignored = {"attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq"};
  return names;
}
}  // namespace

Family gpt_neox_family();  // declared with all others in family.cpp
Family gpt_neox_family() {
  return usual_family("gpt_neox", "GPTNeoXForCausalLM",
                      to_say("attention and MLP in parallel, rotary in part, LayerNorm: Pythia"), &gpt_neox_keys,
                      &gpt_neox_names);
}

}  // namespace headscope
