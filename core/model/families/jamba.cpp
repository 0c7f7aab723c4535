// Jamba (Lieber et al., Jamba: A Hybrid Transformer-Mamba Language Model, 2024): layers of a state space of channels
// (Mamba), whose steps, B and C have norms, and every so manieth attends, without positions; in every other layer each
// token goes through a few of many MLPs.

#include <algorithm>

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/hybrid.h"

namespace headscope {

namespace {
/// The layers i with i % period = offset, by two keys.
std::vector<bool> every_so_manieth(ConfigMap& keys, const std::string& what, std::vector<bool> chosen, int usual_period,
                                   int usual_offset) {
  const int layers = static_cast<int>(chosen.size());
  const auto first = std::ranges::find(chosen, true);
  int offset = static_cast<int>(first - chosen.begin()), period = layers + 1;
  if (first != chosen.end())
    if (const auto next = std::find(first + 1, chosen.end(), true); next != chosen.end())
      period = static_cast<int>(next - first);
  keys.integer(what + "_layer_period", period, 1, 2 * config_limits::layers, usual_period);
  keys.integer(what + "_layer_offset", offset, 0, 2 * config_limits::layers, usual_offset);
  if (!keys.reading()) return chosen;
  if (offset >= period)
    throw keys.json().error(what + "_layer_offset", "less than " + what + "_layer_period = " + std::to_string(period),
                            std::to_string(offset));
  for (int layer = 0; layer < layers; ++layer) chosen[static_cast<std::size_t>(layer)] = layer % period == offset;
  return chosen;
}

void jamba_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  c.position = PositionKind::none;
  const auto layers = static_cast<std::size_t>(c.dims.layers);
  int experts = keys.reading() ? 0 : std::max(c.experts.count, 1);
  keys.integer("num_experts", experts, 1, 4096, 16);
  std::vector<bool> sparse(layers, false), attending(layers, false);
  for (int layer = 0; !keys.reading() && layer < c.dims.layers; ++layer) {
    sparse[static_cast<std::size_t>(layer)] = c.experts.at(layer);
    attending[static_cast<std::size_t>(layer)] = c.dims.attends(layer);
  }
  sparse = every_so_manieth(keys, "expert", std::move(sparse), 2, 1);
  attending = every_so_manieth(keys, "attn", std::move(attending), 8, 4);
  int per_token = std::max(c.experts.per_token, 1);
  keys.integer("num_experts_per_tok", per_token, 1, 4096, 2);
  std::vector<Mixer> mixers;
  if (keys.reading()) {
    if (experts > 1 && std::ranges::count(sparse, true) > 0) {
      if (per_token > experts)
        throw keys.json().error("num_experts_per_tok", "at most the " + std::to_string(experts) + " experts",
                                std::to_string(per_token));
      c.experts.count = c.dims.experts = experts;
      c.experts.per_token = per_token;
      c.experts.width = c.dims.d_mlp;
      if (std::ranges::count(sparse, false) > 0) c.experts.layers = std::move(sparse);
    }
    for (const bool attends : attending) mixers.push_back(attends ? Mixer::attention : Mixer::state_space);
  }
  hybrid_states(keys, c, StateSpaceConfig::Lane::channel, std::move(mixers));
  if (c.state_space) c.state_space->select_norms = true;
  keys.ends(c, false);
}

WeightNames jamba_names(const ModelConfig&) {
  WeightNames names;
  names.ln2 = "pre_ff_layernorm";
  names.gate = "feed_forward.gate_proj", names.up = "feed_forward.up_proj", names.down = "feed_forward.down_proj";
  names.experts.router = "feed_forward.router";
  names.experts.expert = "feed_forward.experts.";
  names.final_norm = "final_layernorm";
  names.state_space = state_space_names("mamba.");
  return names;
}
}  // namespace

Family jamba_family();  // declared with all others in family.cpp
Family jamba_family() {
  return usual_family("jamba", "JambaForCausalLM",
                      to_say("layers of a state space of channels, and every so manieth that attends; experts"),
                      &jamba_keys, &jamba_names);
}

}  // namespace headscope
