// ModernBERT (Warner et al., Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder, 2024): an encoder with
// norms before attention and MLP, rotary positions, gated MLPs, and windows in two of three layers.

#include "core/model/families/modernbert.h"

#include <algorithm>

#include "core/base/words.h"

namespace headscope {

void modernbert_like(ConfigMap& keys, ModelConfig& c, bool causal) {
  if (keys.reading()) c.bias = BiasSet::none();
  keys.extents(c, {.kv_heads = "", .d_head = ""});
  keys.norm(c, NormKind::layer_norm, "norm_eps", 1e-5);
  keys.flag("norm_bias", c.bias.norm, false);
  bool attention = c.bias.q, mlp = c.bias.up;
  keys.flag("attention_bias", attention, false);
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = attention;
  keys.flag("mlp_bias", mlp, false);
  c.bias.up = c.bias.down = mlp;
  keys.activation("hidden_activation", c.activation, "gelu");
  // A token sees half of `local_attention` on either side; in the decoder that half includes itself.
  const int self = causal ? 0 : 1;
  int every = 3, reach = 0;
  for (const int window : c.windows) reach = std::max(reach, 2 * (window - self));
  if (keys.reading() || reach > 0) keys.integer("local_attention", reach, 2, config_limits::context, 128);
  if (keys.reading()) keys.integer("global_attn_every_n_layers", every, 1, config_limits::layers, 3);
  if (keys.reading()) (void)keys.json().has("sliding_window");  // that half again
  keys.layer_types(c, reach / 2 + self, [&](int layer) { return layer % every != 0; });
  keys.rotary_by_window(c, 160000, 10000, "local_rope_theta", "global_rope_theta");
  keys.flag("classifier_bias", c.bias.head, false);
  keys.activation("classifier_activation", c.head_activation, "gelu");
  keys.flag("decoder_bias", c.bias.unembedding, true);
  if (keys.reading()) {
    c.causal = causal;
    c.gated_mlp = true;
    c.embedding_norm = true;
    c.first_norm = false;
    c.head_layer = true;
    if (!causal) keys.predicts(c);
  }
  keys.ends(c, true);
}

WeightNames modernbert_names(const ModelConfig&) {
  WeightNames names;
  names.embedding = "embeddings.tok_embeddings";
  names.embedding_norm = "embeddings.norm";
  names.ln1 = "attn_norm";
  names.qkv = "attn.Wqkv";
  names.o = "attn.Wo";
  names.ln2 = "mlp_norm";
  names.gate_up = "mlp.Wi";
  names.down = "mlp.Wo";
  names.final_norm = "final_norm";
  names.head = "head.dense";
  names.head_norm = "head.norm";
  names.unembedding = "decoder";
  return names;
}

Family modernbert_family();  // declared with all others in family.cpp
Family modernbert_family() {
  return usual_family(
      "modernbert", "ModernBertForMaskedLM", to_say("an encoder: rotary positions, gated MLP, windows"),
      [](ConfigMap& keys, ModelConfig& c) { modernbert_like(keys, c, false); }, &modernbert_names);
}

}  // namespace headscope
