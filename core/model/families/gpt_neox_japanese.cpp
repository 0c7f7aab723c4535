// GPT-NeoX Japanese (ABEJA, 2022): GPT-NeoX one sub-layer behind the other, without biases but one: that of what the
// last layer's attention writes.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void gpt_neox_japanese_keys(ConfigMap& keys, ModelConfig& c) {
  int factor = keys.reading() ? 4 : c.dims.d_mlp / c.dims.d_model;
  keys.extents(c, {.kv_heads = "", .d_head = "", .mlp = ""});
  keys.integer("intermediate_multiple_size", factor, 1, 64, 4);
  c.dims.d_mlp = factor * c.dims.d_model;
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-5);
  keys.rotary(c, 10000, 1, "rotary_pct", "rotary_emb_base");
  keys.activation("hidden_act", c.activation, "gelu");
  if (keys.reading()) {
    c.bias = BiasSet::none();
    c.bias.norm = c.bias.last_o = true;
  }
  keys.ends(c, true);
}

WeightNames gpt_neox_japanese_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {"gpt_neox_japanese.", ""};
  names.embedding = "embed_in";
  names.qkv = "attention.query_key_value";
  names.fused = FusedQkv::by_group;
  names.o = "attention.dense";
  names.last_o_bias = "attention.dense_bias";
  names.up = "mlp.dense_h_to_4h";
  names.down = "mlp.dense_4h_to_h";
  names.final_norm = "final_layer_norm";
  names.unembedding = "embed_out";
  names.unembedding_too = "lm_head";
  names.ignored = {"attention.rotary_emb.inv_freq"};
  return names;
}
}  // namespace

Family gpt_neox_japanese_family();  // declared with all others in family.cpp
Family gpt_neox_japanese_family() {
  return usual_family("gpt_neox_japanese", "GPTNeoXJapaneseForCausalLM",
                      to_say("as gpt_neox, one sub-layer behind the other, with one bias"), &gpt_neox_japanese_keys,
                      &gpt_neox_japanese_names);
}

}  // namespace headscope
