// Mixtral (Jiang et al., Mixtral of Experts, 2024): as Mistral, with eight MLPs in every layer, of which each token
// passes through two.

#include "core/model/families/mixtral.h"

#include "core/base/words.h"
#include "core/model/expert_keys.h"

namespace headscope {

namespace {
void mixtral_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 1e6);
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  keys.one_window(c);
  expert_keys(
      keys, c,
      {.count = "num_local_experts", .count_too = "num_experts", .width = "", .usual_count = 8, .usual_per_token = 2});
  c.experts.renormalized = true;
  keys.ends(c, false);
}
}  // namespace

WeightNames mixtral_names(const ModelConfig&) {
  WeightNames names;
  names.experts.router = "block_sparse_moe.gate";
  names.experts.expert = "block_sparse_moe.experts.";
  names.experts.gate = "w1";
  names.experts.down = "w2";
  names.experts.up = "w3";
  return names;
}

Family mixtral_family();  // declared with all others in family.cpp
Family mixtral_family() {
  return usual_family("mixtral", "MixtralForCausalLM", to_say("as mistral, each token through a few of several MLPs"),
                      &mixtral_keys, &mixtral_names);
}

}  // namespace headscope
