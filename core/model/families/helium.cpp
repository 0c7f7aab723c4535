// Helium (Kyutai, 2025): as Llama, with adjacent pairs rotated.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void helium_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim")) c.dims.d_head = 128;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-8);
  c.rotary.layout = RotaryLayout::interleaved;
  keys.rotary(c, 100000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias", "mlp_bias");
  c.bias.o = false;
  keys.ends(c, false);
}
}  // namespace

Family helium_family();  // declared with all others in family.cpp
Family helium_family() {
  return usual_family("helium", "HeliumForCausalLM", to_say("as llama, adjacent pairs rotated"), &helium_keys,
                      &usual_names);
}

}  // namespace headscope
