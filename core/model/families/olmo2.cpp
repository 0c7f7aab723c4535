// OLMo 2 (OLMo Team, 2 OLMo 2 Furious, 2024): norms stand behind attention and MLP only, and all queries of a token,
// and all its keys, are normalised together.

#include "core/model/families/olmo2.h"

#include "core/base/words.h"

namespace headscope {

void olmo2_like(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.norm_place = NormPlace::behind;
  c.qk_norm = QkNorm::full_width;
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
}

WeightNames olmo2_names(const ModelConfig&) {
  WeightNames names;
  names.ln1_post = "post_attention_layernorm";
  names.ln2_post = "post_feedforward_layernorm";
  return names;
}

namespace {
void olmo2_keys(ConfigMap& keys, ModelConfig& c) {
  olmo2_like(keys, c);
  keys.rotary(c, 10000);
  keys.ends(c, false);
}
}  // namespace

Family olmo2_family();  // declared with all others in family.cpp
Family olmo2_family() {
  return usual_family("olmo2", "Olmo2ForCausalLM",
                      to_say("norms behind attention and MLP, queries and keys normalised over all heads"), &olmo2_keys,
                      &olmo2_names);
}

}  // namespace headscope
