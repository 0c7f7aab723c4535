// OLMo 3 (OLMo Team, 2025): OLMo 2 with a sliding window in three layers of four.

#include "core/model/families/usual.h"

namespace headscope {

namespace {
void olmo3_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.norm_place = NormPlace::behind;
  c.qk_norm = QkNorm::full_width;
  keys.activation("hidden_act", c.activation, "silu");
  c.gated_mlp = true;
  bool biased = c.bias.q;
  keys.flag("attention_bias", biased, false);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = biased;
  int window = 0;
  if (keys.reading()) window = keys.json().integer("sliding_window", 0, config_limits::context, 4096);
  keys.layer_types(c, window, [&](int layer) { return (layer + 1) % 4 != 0; });
  keys.rotary_by_window(c, 500000, 500000, "rope_theta");
  keys.ends(c, false);
}

WeightNames olmo3_names(const ModelConfig&) {
  WeightNames names;
  names.ln1_post = "post_attention_layernorm";
  names.ln2_post = "post_feedforward_layernorm";
  return names;
}
}  // namespace

Family olmo3_family();  // declared with all others in family.cpp
Family olmo3_family() {
  return usual_family("olmo3", "Olmo3ForCausalLM", "as olmo2, three layers in four with a window", &olmo3_keys,
                      &olmo3_names);
}

}  // namespace headscope
