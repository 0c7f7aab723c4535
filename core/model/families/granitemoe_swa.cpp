// Granite MoE with windows (Granite Team, Granite SWASH, 2026): Granite with windows, each token through a few of many
// MLPs, which a file keeps in one tensor, and where it says so through one more.

#include "core/base/words.h"
#include "core/model/families/granite.h"

namespace headscope {

namespace {
void granitemoe_swa_keys(ConfigMap& keys, ModelConfig& c) {
  granitemoe_keys(keys, c);
  keys.integer("shared_intermediate_size", c.experts.shared_width, 0, config_limits::d_mlp, 0);
  granite_windows(keys, c);
}

WeightNames granitemoe_swa_names(const ModelConfig& c) {
  WeightNames names = granitemoe_names(c);
  names.experts.router = "block_sparse_moe.router";
  names.experts.gate_up_of_all = "block_sparse_moe.experts.gate_up_proj";
  names.experts.down_of_all = "block_sparse_moe.experts.down_proj";
  names.experts.shared = "shared_mlp.";
  names.experts.shared_gate_up = "shared_mlp.input_linear";
  names.experts.down = "output_linear";
  return names;
}
}  // namespace

Family granitemoe_swa_family();  // declared with all others in family.cpp
Family granitemoe_swa_family() {
  return usual_family("granitemoe_swa", "GraniteMoeSWAForCausalLM",
                      to_say("as granite_swa, each token through a few of many MLPs"), &granitemoe_swa_keys,
                      &granitemoe_swa_names);
}

}  // namespace headscope
