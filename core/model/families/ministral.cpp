// Ministral (Mistral AI, 2024): as Mistral, with a window in the layers that the file says.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void ministral_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  if (!keys.reading() && c.windows.empty()) keys.optional("sliding_window", 0);
  const bool none = keys.reading() && keys.json().null("sliding_window");
  int window = 0;
  if (keys.reading() && !none) window = keys.json().integer("sliding_window", 0, config_limits::context, 4096);
  keys.layer_types(c, window, [](int) { return true; });
  keys.ends(c, false);
}
}  // namespace

Family ministral_family();  // declared with all others in family.cpp
Family ministral_family() {
  return usual_family("ministral", "MinistralForCausalLM", to_say("as mistral, a window in some layers"),
                      &ministral_keys, &usual_names);
}

}  // namespace headscope
