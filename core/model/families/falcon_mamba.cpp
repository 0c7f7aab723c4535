// Falcon Mamba (Zuo et al., Falcon Mamba: The First Competitive Attention-free 7B Language Model, 2024): as Mamba, with
// norms without weights behind what steps are made of, behind B and behind C.

#include "core/base/words.h"
#include "core/model/families/mamba.h"

namespace headscope {

namespace {
void falcon_mamba_keys(ConfigMap& keys, ModelConfig& c) {
  mamba_channel_keys(keys, c);
  StateSpaceConfig& s = *c.state_space;
  s.select_norms = true;
  s.select_gains = false;
  double epsilon = s.select_epsilon.value_or(c.norm_epsilon);
  keys.number("mixer_rms_eps", epsilon, 0, 1, 1e-6);
  s.select_epsilon = epsilon;
}
}  // namespace

Family falcon_mamba_family();  // declared with all others in family.cpp
Family falcon_mamba_family() {
  return usual_family("falcon_mamba", "FalconMambaForCausalLM",
                      to_say("as mamba, steps, B and C made behind norms without weights"), &falcon_mamba_keys,
                      &mamba_names);
}

}  // namespace headscope
