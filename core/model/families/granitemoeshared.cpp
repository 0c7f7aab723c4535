// Granite 3.x MoE with a shared expert (Granite Team, 2025): Granite MoE, and an MLP beside the others that takes every
// token.

#include "core/base/words.h"
#include "core/model/families/granite.h"

namespace headscope {

namespace {
void granitemoeshared_keys(ConfigMap& keys, ModelConfig& c) {
  granitemoe_keys(keys, c);
  keys.integer("shared_intermediate_size", c.experts.shared_width, 0, config_limits::d_mlp, 0);
}

WeightNames granitemoeshared_names(const ModelConfig& c) {
  WeightNames names = granitemoe_names(c);
  names.experts.shared = "shared_mlp.";
  names.experts.shared_gate_up = "shared_mlp.input_linear";
  names.experts.down = "output_linear";
  return names;
}
}  // namespace

Family granitemoeshared_family();  // declared with all others in family.cpp
Family granitemoeshared_family() {
  return usual_family("granitemoeshared", "GraniteMoeSharedForCausalLM",
                      to_say("as granitemoe, with an MLP for all tokens beside the others"), &granitemoeshared_keys,
                      &granitemoeshared_names);
}

}  // namespace headscope
