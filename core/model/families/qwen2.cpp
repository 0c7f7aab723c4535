// Qwen 2 and 2.5 (Yang et al., Qwen2 Technical Report, 2024): as Llama, with biases on queries, keys and values alone.

#include "core/base/words.h"
#include "core/model/families/qwen.h"

namespace headscope {

void qwen2_like(ConfigMap& keys, ModelConfig& c, const QwenUsual& usual) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", usual.epsilon);
  keys.rotary(c, usual.base);
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = true;
  keys.windows_from("max_window_layers", c, usual.windows_from);
  keys.ends(c, false);
}

namespace {
void qwen2_keys(ConfigMap& keys, ModelConfig& c) {
  qwen2_like(keys, c, {});
}
}  // namespace

Family qwen2_family();  // declared with all others in family.cpp
Family qwen2_family() {
  return usual_family("qwen2", "Qwen2ForCausalLM", to_say("as llama, biases on queries, keys and values"), &qwen2_keys,
                      &usual_names);
}

}  // namespace headscope
