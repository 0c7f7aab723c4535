// Granite 4.0 (IBM, 2025): Granite, whose layers are a state space with heads (Mamba-2) but for a few that attend, most
// without positions; an MLP for every token, in some beside others that take few. The smallest attend in every layer.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/granite.h"
#include "core/model/families/hybrid.h"

namespace headscope {

namespace {
constexpr const char* positions_key = "position_embedding_type";

void granitemoehybrid_keys(ConfigMap& keys, ModelConfig& c) {
  const bool turns = c.position == PositionKind::rotary;  // before the next line says that it does
  granite_stream(keys, c);
  keys.biases(c, "attention_bias");
  if (keys.reading()) {
    if (keys.json().text(positions_key, "") != "rope") c.position = PositionKind::none, c.rotary = {};
  } else if (turns) {
    std::string rope = "rope";
    keys.text(positions_key, rope, rope);
  }
  const int shared_default = 1024;
  if (keys.reading() ? keys.json().integer("num_local_experts", 0, 4096, 8) == 0 : c.experts.count == 0) {
    int none = 0;
    if (!keys.reading()) keys.integer("num_local_experts", none, 0, 0, 0);
    keys.integer("shared_intermediate_size", c.dims.d_mlp, 1, config_limits::d_mlp, shared_default);
  } else {
    expert_keys(keys, c,
                {.count = "num_local_experts", .count_too = "", .width = "", .usual_count = 8, .usual_per_token = 2});
    c.experts.score = RouterScore::softmax_of_chosen;
    keys.integer("shared_intermediate_size", c.experts.shared_width, 1, config_limits::d_mlp, shared_default);
  }
  std::vector<Mixer> mixers;
  if (keys.reading())
    mixers = hybrid_layer_types(
        keys, c, "layer_types", Mixer::state_space,
        {{"attention", Mixer::attention}, {"mamba", Mixer::state_space}, {"linear_attention", Mixer::state_space}});
  else
    put_layer_types(keys, c, "layer_types");
  hybrid_states(keys, c, StateSpaceConfig::Lane::head, std::move(mixers));
}

WeightNames granitemoehybrid_names(const ModelConfig& c) {
  WeightNames names = granitemoe_names(c);
  names.experts.shared = "shared_mlp.";
  names.experts.shared_gate_up = names.gate_up = "shared_mlp.input_linear";
  names.experts.down = "output_linear";
  names.down = "shared_mlp.output_linear";
  names.state_space = state_space_names("mamba.");
  return names;
}
}  // namespace

Family granitemoehybrid_family();  // declared with all others in family.cpp
Family granitemoehybrid_family() {
  return usual_family("granitemoehybrid", "GraniteMoeHybridForCausalLM",
                      to_say("as granitemoeshared, but most layers a state space with heads in place of attention"),
                      &granitemoehybrid_keys, &granitemoehybrid_names);
}

}  // namespace headscope
