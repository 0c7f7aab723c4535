// StarCoder 2 (Lozhkov et al., StarCoder 2 and The Stack v2, 2024): LayerNorms, rotary positions, grouped queries,
// biases, an MLP without gate, and a sliding window where the file names one.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void starcoder2_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::layer_norm, "norm_epsilon", 1e-5);
  keys.rotary(c, 10000);
  keys.activation("hidden_act", c.activation, "gelu_pytorch_tanh");
  bool biased = c.bias.q;
  keys.flag("use_bias", biased, true);
  c.bias = BiasSet::none();
  c.bias.norm = true;
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = c.bias.up = c.bias.down = biased;
  keys.one_window(c);
  keys.ends(c, true);
}

WeightNames starcoder2_names(const ModelConfig&) {
  WeightNames names;
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  return names;
}
}  // namespace

Family starcoder2_family();  // declared with all others in family.cpp
Family starcoder2_family() {
  return usual_family("starcoder2", "Starcoder2ForCausalLM", to_say("LayerNorm, rotary, grouped queries, biases"),
                      &starcoder2_keys, &starcoder2_names);
}

}  // namespace headscope
