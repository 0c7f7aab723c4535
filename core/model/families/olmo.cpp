// OLMo (Groeneveld et al., OLMo: Accelerating the Science of Language Models, 2024): as Llama, with LayerNorms that
// have no weights, and queries, keys and values cut off where the file says so.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void olmo_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::layer_norm, "", 1e-5);
  c.norm_weights = false;
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  keys.cap("clip_qkv", c.clip_qkv, 0);
  keys.ends(c, false);
}
}  // namespace

Family olmo_family();  // declared with all others in family.cpp
Family olmo_family() {
  return usual_family("olmo", "OlmoForCausalLM",
                      to_say("as llama, LayerNorm without weights, queries, keys and values clipped"), &olmo_keys,
                      &usual_names);
}

}  // namespace headscope
