// Qwen 3 (Yang et al., Qwen3 Technical Report, 2025): as Llama, with an RMSNorm on every query and key before they are
// rotated, and heads of a width of their own.

#include "core/base/words.h"
#include "core/model/families/qwen.h"

namespace headscope {

void qwen3_like(ConfigMap& keys, ModelConfig& c, const QwenUsual& usual) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim")) c.dims.d_head = 128;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", usual.epsilon);
  c.qk_norm = QkNorm::per_head;
  keys.rotary(c, usual.base);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
}

namespace {
void qwen3_keys(ConfigMap& keys, ModelConfig& c) {
  qwen3_like(keys, c, {});
  keys.windows_from("max_window_layers", c);
  keys.ends(c, false);
}
}  // namespace

Family qwen3_family();  // declared with all others in family.cpp
Family qwen3_family() {
  return usual_family("qwen3", "Qwen3ForCausalLM", to_say("as llama, queries and keys normalised head by head"),
                      &qwen3_keys, &usual_names);
}

}  // namespace headscope
