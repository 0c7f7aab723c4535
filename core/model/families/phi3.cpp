// Phi 3 (Abdin et al., Phi-3 Technical Report, 2024): as Llama, with one matrix for queries, keys and values and one
// for both branches of the MLP.

#include "core/model/families/phi3.h"

#include "core/base/words.h"

namespace headscope {

void phi3_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  keys.one_window(c);
  keys.ends(c, false);
}

WeightNames phi3_names(const ModelConfig&) {
  WeightNames names;
  names.qkv = "self_attn.qkv_proj";
  names.gate_up = "mlp.gate_up_proj";
  return names;
}

Family phi3_family();  // declared with all others in family.cpp
Family phi3_family() {
  return usual_family("phi3", "Phi3ForCausalLM",
                      to_say("as llama, queries, keys and values in one matrix, gate and up in another"), &phi3_keys,
                      &phi3_names);
}

}  // namespace headscope
