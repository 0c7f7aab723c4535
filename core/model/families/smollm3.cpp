// SmolLM3 (Bakouch et al., SmolLM3, 2025): as Llama, with layers that are not rotated (Yang et al., RoPE to NoPE and
// Back Again, 2025): every fourth, or as the file says.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void smollm3_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  keys.rotary(c, 2e6);
  keys.layers_that_turn("no_rope_layers", c, 4);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias", "mlp_bias");
  bool windowed = keys.reading() ? false : !c.windows.empty();
  keys.flag("use_sliding_window", windowed, false);
  int window = 0;
  if (keys.reading()) window = keys.json().integer("sliding_window", 0, config_limits::context, 0);
  if (windowed)
    keys.layer_types(c, window, [&](int layer) { return !c.turns(layer); });
  else if (keys.reading())
    (void)keys.json().has("layer_types");  // of a model without windows: all alike
  keys.ends(c, true);
}
}  // namespace

Family smollm3_family();  // declared with all others in family.cpp
Family smollm3_family() {
  return usual_family("smollm3", "SmolLM3ForCausalLM", to_say("as llama, every fourth layer without positions"),
                      &smollm3_keys, &usual_names);
}

}  // namespace headscope
