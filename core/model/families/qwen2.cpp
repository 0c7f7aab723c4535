// Qwen 2 and 2.5 (Yang et al., Qwen2 Technical Report, 2024): as Llama, with biases on queries, keys and values alone.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void qwen2_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = true;
  keys.windows_from("max_window_layers", c);
  keys.ends(c, false);
}
}  // namespace

Family qwen2_family();  // declared with all others in family.cpp
Family qwen2_family() {
  return usual_family("qwen2", "Qwen2ForCausalLM", to_say("as llama, biases on queries, keys and values"), &qwen2_keys,
                      &usual_names);
}

}  // namespace headscope
