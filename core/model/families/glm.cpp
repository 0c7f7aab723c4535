// GLM-4 (Team GLM, ChatGLM: A Family of Large Language Models from GLM-130B to GLM-4 All Tools, 2024): as Llama, with
// half of every head rotated in adjacent pairs, biases on queries, keys and values, and both branches of the MLP in one
// matrix.

#include "core/model/families/glm.h"

#include "core/base/words.h"

namespace headscope {

void glm_like(ConfigMap& keys, ModelConfig& c, const GlmUsual& usual) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim") && usual.d_head > 0) c.dims.d_head = usual.d_head;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", usual.epsilon);
  c.rotary.layout = RotaryLayout::interleaved;
  keys.rotary(c, 10000, usual.share);
  keys.gated_mlp("hidden_act", c, "silu");
  bool biased = c.bias.q;
  keys.flag("attention_bias", biased, true);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = biased;
  keys.ends(c, false);
}

void glm_keys(ConfigMap& keys, ModelConfig& c) {
  glm_like(keys, c, {});
}

WeightNames glm_names(const ModelConfig&) {
  WeightNames names;
  names.gate_up = "mlp.gate_up_proj";
  return names;
}

Family glm_family();  // declared with all others in family.cpp
Family glm_family() {
  return usual_family("glm", "GlmForCausalLM",
                      to_say("as llama, half of every head rotated in adjacent pairs, gate and up in one matrix"),
                      &glm_keys, &glm_names);
}

}  // namespace headscope
