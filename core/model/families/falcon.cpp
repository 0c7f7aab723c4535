// Falcon (Almazrouei et al., The Falcon Series of Open Language Models, 2023): attention and MLP in parallel behind one
// norm, or two; one key head for all, or a few, stored with the queries that read them. Rotary, or ALiBi in bfloat16.

#include <cmath>

#include "core/attention/positions/alibi.h"
#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void falcon_keys(ConfigMap& keys, ModelConfig& c) {
  const bool other = keys.reading() && keys.json().has("n_embed");
  keys.extents(c, {.kv_heads = "",
                   .width = other ? "n_embed" : "hidden_size",
                   .d_head = "",
                   .mlp = "ffn_hidden_size",
                   .context = "",
                   .mlp_factor = 4});
  keys.integer("max_position_embeddings", c.context, 1, config_limits::context, 2048);
  ModelDims& d = c.dims;
  bool grouped = c.norm_place == NormPlace::before && d.parallel && !c.shared_norm;
  keys.flag("new_decoder_architecture", grouped, false);
  bool one_key_head = !grouped && d.kv_heads == 1;
  keys.flag("multi_query", one_key_head, true);
  if (grouped)
    keys.integer("num_kv_heads", d.kv_heads, 1, config_limits::heads, d.heads);
  else if (keys.reading())
    d.kv_heads = one_key_head ? 1 : d.heads;
  if (keys.reading() && d.heads % d.kv_heads != 0)
    throw keys.json().error("num_kv_heads", "a divisor of num_attention_heads = " + std::to_string(d.heads),
                            std::to_string(d.kv_heads));
  bool parallel = d.parallel;
  keys.flag("parallel_attn", parallel, true);
  d.parallel = parallel || grouped;
  int norms = d.parallel && !c.shared_norm ? 2 : 1;
  if (keys.reading())
    norms = keys.json().integer("num_ln_in_parallel_attn", 1, 2, grouped ? 2 : 1);
  else
    keys.integer("num_ln_in_parallel_attn", norms, 1, 2);
  c.shared_norm = d.parallel && !(grouped && norms == 2);
  keys.norm(c, NormKind::layer_norm, "layer_norm_epsilon", 1e-5);
  bool alibi = c.position == PositionKind::alibi;
  keys.flag("alibi", alibi, false);
  if (alibi) {               // a bias is made in bfloat16 and then divided with the score
    ModelConfig unused = c;  // files name rotations that they do not use
    if (keys.reading()) keys.rotary(unused, 10000);
    c.position = PositionKind::alibi;
    c.alibi_unit = 1 / std::sqrt(static_cast<double>(d.d_head));
    c.alibi_slopes = alibi_slopes(d.heads);
    for (double& slope : c.alibi_slopes) slope *= c.alibi_unit;
  } else {
    keys.rotary(c, 10000);
  }
  keys.activation("activation", c.activation, "gelu");
  bool biased = c.bias.q;
  keys.flag("bias", biased, false);
  c.bias = BiasSet::none();
  c.bias.norm = true;
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = c.bias.up = c.bias.down = biased;
  keys.ends(c, true);
}

WeightNames falcon_names(const ModelConfig& c) {
  WeightNames names;
  names.prefixes = {"transformer.", ""};
  names.embedding = "word_embeddings";
  names.block = "h.";
  if (c.dims.parallel && !c.shared_norm) {
    names.ln1 = "ln_attn";
    names.ln2 = "ln_mlp";
  }
  names.qkv = "self_attention.query_key_value";
  names.fused = FusedQkv::by_group;
  names.o = "self_attention.dense";
  names.up = "mlp.dense_h_to_4h";
  names.down = "mlp.dense_4h_to_h";
  names.final_norm = "ln_f";
  names.ignored = {"self_attention.rotary_emb.inv_freq"};
  return names;
}
}  // namespace

Family falcon_family();  // declared with all others in family.cpp
Family falcon_family() {
  return usual_family("falcon", "FalconForCausalLM", to_say("attention and MLP in parallel, rotary, shared keys"),
                      &falcon_keys, &falcon_names);
}

}  // namespace headscope
