// Jais 2 (Inception, MBZUAI and Cerebras, 2025): as Llama with LayerNorms and biases, an MLP without gate behind a
// squared ReLU.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void jais2_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-5);
  keys.rotary(c, 10000);
  keys.activation("hidden_act", c.activation, "relu2");
  bool attention = c.bias.q, mlp = c.bias.up;
  keys.flag("attention_bias", attention, true);
  keys.flag("mlp_bias", mlp, true);
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = attention;
  c.bias.up = c.bias.down = mlp;
  keys.ends(c, false);
}
}  // namespace

Family jais2_family();  // declared with all others in family.cpp
Family jais2_family() {
  return usual_family("jais2", "Jais2ForCausalLM", to_say("LayerNorm, rotary, biases, a squared ReLU"), &jais2_keys,
                      &usual_names);
}

}  // namespace headscope
