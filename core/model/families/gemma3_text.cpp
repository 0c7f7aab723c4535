// Gemma 3, text (Gemma Team, Gemma 3 Technical Report, 2025): Gemma 2 with an RMSNorm on queries and keys in place of
// soft caps, five layers in six with a window and a rotary base of their own.

#include <cmath>

#include "core/model/families/usual.h"

namespace headscope {

namespace {
void gemma3_text_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim")) c.dims.d_head = 256;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.norm_gain_plus_one = true;
  c.embedding_scale = std::sqrt(static_cast<double>(c.dims.d_model));
  c.norm_place = NormPlace::both;
  c.qk_norm = QkNorm::per_head;
  keys.activation("hidden_activation", c.activation, "gelu_pytorch_tanh");
  c.gated_mlp = true;
  bool biased = c.bias.q;
  keys.flag("attention_bias", biased, false);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = biased;
  double scalar = c.score_scale ? 1 / (*c.score_scale * *c.score_scale) : 256;
  keys.number("query_pre_attn_scalar", scalar, 1e-6, 1e9, 256);
  c.score_scale = 1 / std::sqrt(scalar);
  keys.cap("attn_logit_softcapping", c.score_cap, 0);
  keys.cap("final_logit_softcapping", c.logit_cap, 0);
  int pattern = 6;
  if (keys.reading()) pattern = keys.json().integer("sliding_window_pattern", 1, config_limits::layers, 6);
  int window = 0;
  if (keys.reading()) window = keys.json().integer("sliding_window", 0, config_limits::context, 4096);
  keys.layer_types(c, window, [&](int layer) { return (layer + 1) % pattern != 0; });
  keys.rotary_by_window(c, 1e6, 1e4, "rope_local_base_freq");
  keys.only("use_bidirectional_attention", false, "only decoders are read, which see no later token");
  keys.ends(c, true);
}

WeightNames gemma3_text_names(const ModelConfig&) {
  WeightNames names;
  names.ln1_post = "post_attention_layernorm";
  names.ln2 = "pre_feedforward_layernorm";
  names.ln2_post = "post_feedforward_layernorm";
  return names;
}
}  // namespace

Family gemma3_text_family();  // declared with all others in family.cpp
Family gemma3_text_family() {
  return usual_family("gemma3_text", "Gemma3ForCausalLM",
                      "norms before and behind and on queries and keys, five layers in six with a window",
                      &gemma3_text_keys, &gemma3_text_names);
}

}  // namespace headscope
