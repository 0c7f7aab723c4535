// DeepSeek V2 (DeepSeek-AI, DeepSeek-V2, 2024): as Llama, but keys and values of all heads are made of one latent per
// token, and positions turn a part of queries and keys that is apart.

#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void deepseek_v2_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading()) c.rotary.layout = RotaryLayout::interleaved;
  bool biased = c.bias.up;
  deepseek_keys(keys, c, 0);
  keys.flag("mlp_bias", biased, false);
  c.bias.up = c.bias.down = biased;
}
}  // namespace

Family deepseek_v2_family();  // declared with all others in family.cpp
Family deepseek_v2_family() {
  return usual_family("deepseek_v2", "DeepseekV2ForCausalLM",
                      "keys and values of a latent, positions on a part of each head; without experts",
                      &deepseek_v2_keys, &deepseek_names);
}

}  // namespace headscope
