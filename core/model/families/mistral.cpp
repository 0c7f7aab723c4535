// Mistral (Jiang et al., Mistral 7B, 2023): as Llama, with a sliding window in every layer where the file names one.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void mistral_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  keys.one_window(c, 4096);
  keys.ends(c, false);
}
}  // namespace

Family mistral_family();  // declared with all others in family.cpp
Family mistral_family() {
  return usual_family("mistral", "MistralForCausalLM", to_say("as llama, with a sliding window"), &mistral_keys,
                      &usual_names);
}

}  // namespace headscope
