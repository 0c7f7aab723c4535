// Ministral 3 (Mistral AI, 2025): as Mistral, with queries that grow along the text, so that attention over many keys
// stays as sharp.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void ministral3_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 1e6);
  if (keys.reading() && c.rotary.width > 0 && c.rotary.query_growth > 0)
    throw keys.json().error("partial_rotary_factor", "1, where queries grow", std::to_string(c.rotary.width));
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  keys.one_window(c);
  keys.ends(c, false);
}
}  // namespace

Family ministral3_family();  // declared with all others in family.cpp
Family ministral3_family() {
  return usual_family("ministral3", "Ministral3ForCausalLM", to_say("as mistral, queries that grow along the text"),
                      &ministral3_keys, &usual_names);
}

}  // namespace headscope
