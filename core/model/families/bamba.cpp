// Bamba (IBM, Princeton, CMU and UIUC, 2024): most layers a state space with heads (Mamba-2), a few attend and turn
// half of each head; a gated MLP behind either.

#include "core/base/words.h"
#include "core/model/families/hybrid.h"

namespace headscope {

namespace {
void bamba_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 10000, 0.5);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias", "mlp_bias");
  std::vector<Mixer> mixers;
  if (keys.reading()) {
    mixers.assign(static_cast<std::size_t>(c.dims.layers), Mixer::state_space);
    if (const auto attending = keys.json().integers("attn_layer_indices", 0, c.dims.layers - 1))
      for (const int layer : *attending) mixers[static_cast<std::size_t>(layer)] = Mixer::attention;
  } else {
    std::vector<int> attending;
    for (int layer = 0; layer < c.dims.layers; ++layer)
      if (c.dims.attends(layer)) attending.push_back(layer);
    keys.put("attn_layer_indices", attending);
  }
  hybrid_states(keys, c, StateSpaceConfig::Lane::head, std::move(mixers));
  keys.ends(c, false);
}
}  // namespace

Family bamba_family();  // declared with all others in family.cpp
Family bamba_family() {
  return usual_family("bamba", "BambaForCausalLM", to_say("layers of a state space with heads, and a few that attend"),
                      &bamba_keys, &bamba_names);
}

}  // namespace headscope
