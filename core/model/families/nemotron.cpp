// Nemotron-4 and Minitron (NVIDIA, Nemotron-4 15B Technical Report, 2024): LayerNorms whose stored gains are added to
// 1, half of every head rotated, an MLP without gate behind a squared ReLU.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void nemotron_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::layer_norm, "norm_eps", 1e-5);
  c.norm_gain_plus_one = true;
  keys.rotary(c, 10000, 0.5);
  keys.activation("hidden_act", c.activation, "relu2");
  keys.biases(c, "attention_bias", "mlp_bias");
  c.bias.norm = true;
  keys.ends(c, false);
}
}  // namespace

Family nemotron_family();  // declared with all others in family.cpp
Family nemotron_family() {
  return usual_family(
      "nemotron", "NemotronForCausalLM",
      to_say("LayerNorm with gains added to 1, rotary in part, an MLP without gate behind a squared ReLU"),
      &nemotron_keys, &usual_names);
}

}  // namespace headscope
