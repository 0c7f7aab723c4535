// GLM-4.5 and 4.6 (GLM-4.5 Team, GLM-4.5: Agentic, Reasoning, and Coding (ARC) Foundation Models, 2025): as Llama, half
// of every head rotated, experts as in DeepSeek V3.

#include "core/base/words.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void glm4_moe_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  deepseek_experts(keys, c, {.dense_layers = 1, .experts = 128, .per_token = 8, .shared = 1, .width = 1408});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  bool normed = c.qk_norm != QkNorm::none;
  keys.flag("use_qk_norm", normed, false);
  c.qk_norm = normed ? QkNorm::per_head : QkNorm::none;
  keys.rotary(c, 10000, 0.5);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  c.bias.o = false;
  keys.ends(c, false);
  if (c.experts.anywhere()) deepseek_router(keys, c.experts, 1, 1, true);
}
}  // namespace

Family glm4_moe_family();  // declared with all others in family.cpp
Family glm4_moe_family() {
  return usual_family("glm4_moe", "Glm4MoeForCausalLM",
                      to_say("half of every head rotated, each token through a few of many MLPs"), &glm4_moe_keys,
                      &deepseek_names);
}

}  // namespace headscope
