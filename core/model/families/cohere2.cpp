// Cohere Command R7B and A (Cohere, 2024): Command-R whose layers with a window are rotated, and whose others, every
// fourth, see all tokens without positions.

#include "core/base/words.h"
#include "core/model/families/cohere.h"

namespace headscope {

namespace {
void cohere2_keys(ConfigMap& keys, ModelConfig& c) {
  cohere_like(keys, c, 10000);
  keys.windows_every(c, 4096, 4);
  if (keys.reading())
    for (int layer = 0; layer < c.dims.layers; ++layer) c.layer_turns.push_back(c.window(layer) > 0);
  keys.only("use_qk_norm", false, "no norm of queries and keys is known of this family");
  keys.ends(c, true);
}
}  // namespace

Family cohere2_family();  // declared with all others in family.cpp
Family cohere2_family() {
  return usual_family("cohere2", "Cohere2ForCausalLM",
                      to_say("as cohere, three layers in four with a window, the others without positions"),
                      &cohere2_keys, &usual_names);
}

}  // namespace headscope
