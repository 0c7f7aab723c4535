// OLMo 3 (OLMo Team, 2025): OLMo 2 with a sliding window in three layers of four.

#include "core/base/words.h"
#include "core/model/families/olmo2.h"

namespace headscope {

namespace {
void olmo3_keys(ConfigMap& keys, ModelConfig& c) {
  olmo2_like(keys, c);
  int window = 0;
  if (keys.reading()) window = keys.json().integer("sliding_window", 0, config_limits::context, 4096);
  keys.layer_types(c, window, [&](int layer) { return (layer + 1) % 4 != 0; });
  keys.rotary_by_window(c, 500000, 500000, "rope_theta");
  keys.ends(c, false);
}
}  // namespace

Family olmo3_family();  // declared with all others in family.cpp
Family olmo3_family() {
  return usual_family("olmo3", "Olmo3ForCausalLM", to_say("as olmo2, three layers in four with a window"), &olmo3_keys,
                      &olmo2_names);
}

}  // namespace headscope
