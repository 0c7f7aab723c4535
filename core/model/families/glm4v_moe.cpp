// GLM-4.5V and GLM-4.6V (GLM-V Team, GLM-4.5V and GLM-4.1V-Thinking, 2025), of which the half that reads text is read:
// its rotation knows time, height and width, which are one position in a text.

#include "core/base/words.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/text_half.h"

namespace headscope {

namespace {
void glm4v_moe_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  deepseek_experts(keys, c, {.dense_layers = 1, .experts = 128, .per_token = 8, .shared = 1, .width = 1408});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.only("use_qk_norm", false, "the library does not know it in this family");
  keys.rotary(c, 10000, 0.5);
  keys.gated_mlp("hidden_act", c, "silu");
  bool biased = c.bias.q;
  keys.flag("attention_bias", biased, true);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = biased;
  keys.ends(c, false);
  if (c.experts.anywhere()) deepseek_router(keys, c.experts, 1, 1, true);
}
}  // namespace

Family glm4v_moe_family();  // declared with all others in family.cpp
Family glm4v_moe_family() {
  return text_half_family({.model_type = "glm4v_moe",
                           .architecture = "Glm4vMoeForConditionalGeneration",
                           .summary = to_say("as glm4_moe: the half that reads text, pictures are not read"),
                           .types = {"glm4v_moe_text"},
                           .map = &glm4v_moe_keys,
                           .names = &deepseek_names});
}

}  // namespace headscope
