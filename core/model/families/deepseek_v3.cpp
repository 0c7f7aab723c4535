// DeepSeek V3 (DeepSeek-AI, DeepSeek-V3 Technical Report, 2024): attention as in V2; which pairs turn is told.

#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void deepseek_v3_keys(ConfigMap& keys, ModelConfig& c) {
  bool adjacent = c.rotary.layout == RotaryLayout::interleaved;
  keys.flag("rope_interleave", adjacent, true);
  c.rotary.layout = adjacent ? RotaryLayout::interleaved : RotaryLayout::half_split;
  deepseek_keys(keys, c, 3);
}
}  // namespace

Family deepseek_v3_family();  // declared with all others in family.cpp
Family deepseek_v3_family() {
  return usual_family("deepseek_v3", "DeepseekV3ForCausalLM",
                      "keys and values of a latent, positions on a part of each head; without experts",
                      &deepseek_v3_keys, &deepseek_names);
}

}  // namespace headscope
