// EXAONE 4.0 (LG AI Research, EXAONE 4.0: Unified Large Language Models Integrating Non-reasoning and Reasoning Modes,
// 2025): norms behind attention and MLP only, queries and keys normalised head by head; where some layers have a
// window, the others are not rotated.

#include "core/model/families/exaone4.h"

#include "core/base/words.h"

namespace headscope {

void exaone4_windows(ConfigMap& keys, ModelConfig& c) {
  const bool windowed = keys.reading() ? !keys.json().null("sliding_window") : !c.layer_turns.empty();
  if (windowed)
    keys.windows_every(c, 4096, 4);
  else if (keys.reading())
    (void)keys.json().has("layer_types");  // all alike
  else
    keys.optional("sliding_window", 0);
  if (keys.reading() && windowed)
    for (int layer = 0; layer < c.dims.layers; ++layer) c.layer_turns.push_back(c.window(layer) > 0);
}

namespace {
void exaone4_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.norm_place = NormPlace::behind;
  c.qk_norm = QkNorm::per_head;
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  exaone4_windows(keys, c);
  keys.ends(c, false);
}

WeightNames exaone4_names(const ModelConfig&) {
  WeightNames names;
  names.ln1_post = "post_attention_layernorm";
  names.ln2_post = "post_feedforward_layernorm";
  return names;
}
}  // namespace

Family exaone4_family();  // declared with all others in family.cpp
Family exaone4_family() {
  return usual_family("exaone4", "Exaone4ForCausalLM",
                      to_say("norms behind attention and MLP, queries and keys normalised head by head, layers without "
                             "window without positions"),
                      &exaone4_keys, &exaone4_names);
}

}  // namespace headscope
