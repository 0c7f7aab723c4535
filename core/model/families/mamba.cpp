// Mamba (Gu & Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, 2023): no attention and no MLP, a
// state space of many channels behind a short convolution, gated.

#include "core/model/families/mamba.h"

#include <algorithm>
#include <string>

#include "core/base/words.h"

namespace headscope {

namespace limit = config_limits;

namespace {
/// Channels of the state space: a multiple of the width.
void inner_width(ConfigMap& keys, ModelConfig& c) {
  ModelDims& d = c.dims;
  // Of channels without heads the library takes it where a file has it.
  if (keys.reading() && c.state_space->lane == StateSpaceConfig::Lane::channel &&
      keys.json().has("intermediate_size")) {
    (void)keys.json().has("expand");
    return keys.integer("intermediate_size", d.d_inner, 1, limit::d_mlp);
  }
  if (keys.reading()) {
    d.d_inner = static_cast<int>(keys.json().number("expand", 1e-3, 1024, 2) * d.d_model);
    if (d.d_inner < 1 || d.d_inner > limit::d_mlp)
      throw keys.json().error("expand", "times hidden_size a width from 1 to " + std::to_string(limit::d_mlp),
                              std::to_string(d.d_inner));
    return;
  }
  double times = static_cast<double>(d.d_inner) / d.d_model;
  if (int whole = d.d_inner / d.d_model; whole * d.d_model == d.d_inner)
    keys.integer("expand", whole, 1, 1024);
  else
    keys.number("expand", times, 0, 1024);
}

/// The few numbers that steps of channels are made of.
void step_rank(ConfigMap& keys, ModelConfig& c) {
  int& rank = c.state_space->step_rank;
  if (keys.reading() && (!keys.json().has("time_step_rank") || keys.json().is_text("time_step_rank"))) {
    if (const std::string word = keys.json().text("time_step_rank", "auto"); word != "auto")
      throw keys.json().error("time_step_rank", "a whole number or \"auto\"", word);
    rank = (c.dims.d_model + 15) / 16;
    return;
  }
  keys.integer("time_step_rank", rank, 1, limit::d_model);
}
}  // namespace

void mamba_keys(ConfigMap& keys, ModelConfig& c, StateSpaceConfig::Lane lane) {
  if (keys.reading()) {
    c.state_space.emplace().lane = lane;
    c.position = PositionKind::none;
    c.bias = BiasSet::none();
  }
  ModelDims& d = c.dims;
  StateSpaceConfig& s = *c.state_space;
  keys.integer("num_hidden_layers", d.layers, 1, limit::layers);
  keys.integer("hidden_size", d.d_model, 1, limit::d_model);
  keys.integer("vocab_size", d.vocab, 1, limit::vocab);
  keys.integer("state_size", d.d_state, 1, limit::d_head, lane == StateSpaceConfig::Lane::channel ? 16 : 128);
  keys.integer("conv_kernel", s.convolution, 1, limit::d_head, 4);
  inner_width(keys, c);
  keys.norm(c, NormKind::rms_norm, "layer_norm_epsilon", 1e-5);
  keys.activation("hidden_act", c.activation, "silu");
  keys.flag("use_bias", s.bias, false);
  keys.flag("use_conv_bias", s.convolution_bias, true);
  c.bias.o = s.bias;
  // A state knows no longest text; the published models were trained on so many tokens.
  keys.integer("max_position_embeddings", c.context, 1, limit::context, 2048);
  keys.ends(c, lane == StateSpaceConfig::Lane::channel);
}

WeightNames mamba_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {"backbone.", ""};
  names.embeddings = {"backbone.embeddings", "backbone.embedding", "embeddings", "embedding"};
  names.probe = "norm_f.weight";
  names.ln1 = "norm";
  names.o = "mixer.out_proj";
  names.final_norm = "norm_f";
  names.ignored = {};
  return names;
}

void mamba_channel_keys(ConfigMap& keys, ModelConfig& c) {
  mamba_keys(keys, c, StateSpaceConfig::Lane::channel);
  step_rank(keys, c);
  if (!keys.reading()) return;
  ModelDims& d = c.dims;
  d.lanes = d.convolved = d.d_inner;
  d.state_groups = 1;
  d.heads = std::min(d.d_inner, most_channel_groups);
  while (d.d_inner % d.heads != 0) --d.heads;
  d.kv_heads = d.heads;
  d.d_head = d.d_inner / d.heads;
}

Family mamba_family();  // declared with all others in family.cpp
Family mamba_family() {
  return usual_family("mamba", "MambaForCausalLM", to_say("no attention: a selective state space of channels"),
                      &mamba_channel_keys, &mamba_names);
}

}  // namespace headscope
