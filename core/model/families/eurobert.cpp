// EuroBERT (Boizard et al., EuroBERT: Scaling Multilingual Encoders for European Languages, 2025): Llama whose tokens
// all see each other.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void eurobert_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 250000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias", "mlp_bias");
  c.bias.unembedding = c.bias.up;
  if (keys.reading()) {
    c.causal = false;
    keys.predicts(c);
  }
  keys.ends(c, false);
}
}  // namespace

Family eurobert_family();  // declared with all others in family.cpp
Family eurobert_family() {
  return usual_family("eurobert", "EuroBertForMaskedLM", to_say("an encoder: llama whose tokens all see each other"),
                      &eurobert_keys, &usual_names);
}

}  // namespace headscope
