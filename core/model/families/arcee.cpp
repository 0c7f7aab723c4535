// AFM-4.5B (Arcee AI, 2025): as Llama, with an MLP without gate behind a squared ReLU (So et al., Primer, 2021).

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void arcee_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 10000);
  keys.activation("hidden_act", c.activation, "relu2");
  keys.biases(c, "attention_bias", "mlp_bias");
  keys.ends(c, false);
}
}  // namespace

Family arcee_family();  // declared with all others in family.cpp
Family arcee_family() {
  return usual_family("arcee", "ArceeForCausalLM", to_say("as llama, an MLP without gate behind a squared ReLU"),
                      &arcee_keys, &usual_names);
}

}  // namespace headscope
