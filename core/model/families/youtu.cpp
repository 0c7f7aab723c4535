// Youtu-LLM (Tencent, Youtu-LLM: Unlocking the Native Agentic Potential for Lightweight Large Language Models, 2025):
// attention as in DeepSeek V3, one MLP in every layer.

#include "core/base/words.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void youtu_keys(ConfigMap& keys, ModelConfig& c) {
  bool adjacent = c.rotary.layout == RotaryLayout::interleaved;
  keys.flag("rope_interleave", adjacent, true);
  c.rotary.layout = adjacent ? RotaryLayout::interleaved : RotaryLayout::half_split;
  deepseek_keys(keys, c, {.dense_layers = config_limits::layers});
  if (keys.reading()) c.tied_embeddings = keys.json().flag("tie_word_embeddings", true);
}
}  // namespace

Family youtu_family();  // declared with all others in family.cpp
Family youtu_family() {
  return usual_family("youtu", "YoutuForCausalLM", to_say("as deepseek_v3, one MLP for all tokens"), &youtu_keys,
                      &deepseek_names);
}

}  // namespace headscope
