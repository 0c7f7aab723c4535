// DeepSeek V3 (DeepSeek-AI, DeepSeek-V3 Technical Report, 2024): attention as in V2; which pairs turn is told. Experts
// are chosen by sigmoids with a correction that their weights do not have.

#include "core/base/words.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void deepseek_v3_keys(ConfigMap& keys, ModelConfig& c) {
  bool adjacent = c.rotary.layout == RotaryLayout::interleaved;
  keys.flag("rope_interleave", adjacent, true);
  c.rotary.layout = adjacent ? RotaryLayout::interleaved : RotaryLayout::half_split;
  deepseek_keys(keys, c, {.dense_layers = 3, .experts = 256, .per_token = 8, .shared = 1, .width = 2048, .scale = 2.5});
  if (c.experts.anywhere()) deepseek_router(keys, c.experts, 8, 4, true);
}
}  // namespace

Family deepseek_v3_family();  // declared with all others in family.cpp
Family deepseek_v3_family() {
  return usual_family(
      "deepseek_v3", "DeepseekV3ForCausalLM",
      to_say("keys and values of a latent, positions on a part of each head, each token through a few of many MLPs"),
      &deepseek_v3_keys, &deepseek_names);
}

}  // namespace headscope
