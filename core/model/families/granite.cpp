// Granite (Granite Team, Granite 3.0 Language Models, 2024): as Llama, with numbers that embeddings, scores, what
// blocks add, and logits are multiplied by.

#include "core/model/families/granite.h"

#include "core/base/words.h"

namespace headscope {

void granite_stream(ConfigMap& keys, ModelConfig& c, const GraniteUsual& usual) {
  keys.extents(c, {.d_head = "", .usual_kv_heads = usual.kv_heads});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", usual.epsilon);
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.number("embedding_multiplier", c.embedding_scale, -1e6, 1e6, 1);
  keys.number("residual_multiplier", c.residual_scale, -1e6, 1e6, 1);
  double scale = c.score_scale.value_or(1), divisor = 1 / c.logit_scale;
  keys.number("attention_multiplier", scale, -1e6, 1e6, 1);
  c.score_scale = scale;
  keys.number("logits_scaling", divisor, 1e-6, 1e6, 1);
  c.logit_scale = 1 / divisor;
  keys.ends(c, usual.tied);
}

namespace {
void granite_keys(ConfigMap& keys, ModelConfig& c) {
  granite_stream(keys, c);
  keys.biases(c, "attention_bias", "mlp_bias");
}
}  // namespace

Family granite_family();  // declared with all others in family.cpp
Family granite_family() {
  return usual_family("granite", "GraniteForCausalLM", to_say("as llama, with multipliers"), &granite_keys,
                      &usual_names);
}

}  // namespace headscope
