// Gemma 2 (Gemma Team, Gemma 2: Improving Open Language Models at a Practical Size, 2024): Gemma with norms before and
// behind each part, scores and logits bent by soft caps, and a sliding window in every second layer.

#include <cmath>

#include "core/model/families/usual.h"

namespace headscope {

namespace {
void gemma2_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim")) c.dims.d_head = 256;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.norm_gain_plus_one = true;
  c.embedding_scale = std::sqrt(static_cast<double>(c.dims.d_model));
  c.norm_place = NormPlace::both;
  keys.rotary(c, 10000);
  keys.activation("hidden_activation", c.activation, "gelu_pytorch_tanh");
  c.gated_mlp = true;
  bool biased = c.bias.q;
  keys.flag("attention_bias", biased, false);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = biased;
  double scalar = c.score_scale ? 1 / (*c.score_scale * *c.score_scale) : 256;
  keys.number("query_pre_attn_scalar", scalar, 1e-6, 1e9, 256);
  c.score_scale = 1 / std::sqrt(scalar);
  keys.cap("attn_logit_softcapping", c.score_cap, 50);
  keys.cap("final_logit_softcapping", c.logit_cap, 30);
  int window = 0;
  if (keys.reading()) window = keys.json().integer("sliding_window", 0, config_limits::context, 4096);
  keys.layer_types(c, window, [&](int layer) { return layer % 2 == 0; });
  keys.only("use_bidirectional_attention", false, "only decoders are read, which see no later token");
  keys.ends(c, true);
}

WeightNames gemma2_names(const ModelConfig&) {
  WeightNames names;
  names.ln1_post = "post_attention_layernorm";
  names.ln2 = "pre_feedforward_layernorm";
  names.ln2_post = "post_feedforward_layernorm";
  return names;
}
}  // namespace

Family gemma2_family();  // declared with all others in family.cpp
Family gemma2_family() {
  return usual_family("gemma2", "Gemma2ForCausalLM",
                      "norms before and behind, soft caps, every other layer with a window", &gemma2_keys,
                      &gemma2_names);
}

}  // namespace headscope
