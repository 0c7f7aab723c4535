// Falcon-H1 (Falcon LLM Team, Falcon-H1: A Family of Hybrid-Head Language Models, 2025): a block's attention and state
// space (Mamba-2) read the same norm of the stream and add to it side by side, an MLP behind both. Here these are two
// layers, each with its own heads and maps: the state space, and attention with the MLP, whose first norm reads what
// entered the layer before it. Numbers that parts of a block are multiplied by (μP) are read into its matrices.

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/model/families/hybrid.h"

namespace headscope {

namespace {
namespace limit = config_limits;

/// So many numbers, or as many of 1.
void multipliers(ConfigMap& keys, const std::string& key, const std::vector<double*>& into) {
  std::vector<double> all(into.size(), 1);
  if (!keys.reading()) {
    for (std::size_t i = 0; i < into.size(); ++i) all[i] = *into[i];
    return keys.put(key, all);
  }
  if (keys.json().has(key) && !keys.json().null(key)) all = keys.json().numbers(key, -1e6, 1e6);
  if (all.size() != into.size())
    throw keys.json().error(key, fmt::format("{} numbers", into.size()), std::to_string(all.size()));
  for (std::size_t i = 0; i < into.size(); ++i) *into[i] = all[i];
}

void falcon_h1_states(ConfigMap& keys, ModelConfig& c) {
  ModelDims& d = c.dims;
  if (keys.reading()) c.state_space.emplace().lane = StateSpaceConfig::Lane::head;
  StateSpaceConfig& s = *c.state_space;
  int inner = d.d_inner, expand = 2;
  if (keys.reading() && keys.json().null("mamba_d_ssm")) {
    keys.integer("mamba_expand", expand, 1, 1024, 2);
    inner_extents(keys.json(), d, expand, d.d_model, "mamba_expand");
    inner = d.d_inner;
  } else {
    keys.integer("mamba_d_ssm", inner, 1, limit::d_mlp, 1024);
  }
  d.d_inner = inner;
  keys.integer("mamba_n_heads", d.lanes, 1, limit::d_mlp, 128);
  int width = keys.reading() ? 0 : d.d_inner / d.lanes;
  if (!keys.reading() || (keys.json().has("mamba_d_head") && !keys.json().is_text("mamba_d_head")))
    keys.integer("mamba_d_head", width, 1, limit::d_mlp);
  else if (const std::string word = keys.json().text("mamba_d_head", "auto"); word == "auto")
    width = d.d_inner / d.lanes;
  else
    throw keys.json().error("mamba_d_head", "a whole number or \"auto\"", word);
  if (keys.reading() && std::int64_t{d.lanes} * width != d.d_inner)
    throw keys.json().error("mamba_d_head", fmt::format("with mamba_n_heads the width {}", d.d_inner),
                            fmt::format("{} · {}", d.lanes, width));
  keys.integer("mamba_n_groups", d.state_groups, 1, limit::heads, 1);
  keys.integer("mamba_d_state", d.d_state, 1, limit::d_mlp, 256);
  keys.integer("mamba_d_conv", s.convolution, 1, limit::d_head, 4);
  keys.flag("mamba_conv_bias", s.convolution_bias, true);
  bool out = s.biased_out();
  keys.flag("mamba_proj_bias", s.bias, false);
  keys.flag("projectors_bias", out, false);
  if (out != s.bias) s.out_bias = out;
  keys.flag("mamba_rms_norm", s.gated_norm, false);
  bool before = keys.reading() || s.norm_before_gate || !s.gated_norm;
  keys.flag("mamba_norm_before_gate", before, true);
  s.norm_before_gate = s.gated_norm && before;
  step_limits(keys, s);
  if (!keys.reading()) return;
  convolved_extents(keys.json(), d, "mamba_d_state");
  const int layers = 2 * d.layers;
  std::vector<Mixer> mixers;
  for (int layer = 0; layer < layers; ++layer) {
    mixers.push_back(layer % 2 == 0 ? Mixer::state_space : Mixer::attention);
    d.bare.push_back(layer % 2 == 0);
  }
  d.layers = layers;
  settle_heads(keys, c, mixers, "mamba_n_heads", "mamba_n_groups");
  settle_mixers(c, std::move(mixers));
}

void falcon_h1_keys(ConfigMap& keys, ModelConfig& c) {
  if (!keys.reading()) c.dims.layers /= 2;
  keys.extents(c, {.usual_kv_heads = 8});
  c.dims.paired = true;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias", "mlp_bias");
  keys.number("embedding_multiplier", c.embedding_scale, -1e6, 1e6, 1);
  keys.number("lm_head_multiplier", c.logit_scale, -1e6, 1e6, 1);
  Multipliers& m = c.multipliers;
  keys.number("attention_in_multiplier", m.attention_in, -1e6, 1e6, 1);
  keys.number("attention_out_multiplier", m.attention_out, -1e6, 1e6, 1);
  keys.number("key_multiplier", m.key, -1e6, 1e6, 1);
  keys.number("ssm_in_multiplier", m.state_in, -1e6, 1e6, 1);
  keys.number("ssm_out_multiplier", m.state_out, -1e6, 1e6, 1);
  multipliers(keys, "ssm_multipliers", {&m.state_gate, &m.state_x, &m.state_b, &m.state_c, &m.state_step});
  multipliers(keys, "mlp_multipliers", {&m.mlp_gate, &m.mlp_out});
  if (keys.reading())
    for (const char* key : {"layer_types", "layers_block_type"})
      if (const auto kinds = keys.json().texts(key))
        for (const std::string& kind : *kinds) (void)keys.json().choice<bool>(key, kind, {{"hybrid", true}});
  falcon_h1_states(keys, c);
  keys.ends(c, false);
}
}  // namespace

Family falcon_h1_family();  // declared with all others in family.cpp
Family falcon_h1_family() {
  return usual_family("falcon_h1", "FalconH1ForCausalLM",
                      to_say("a state space with heads and attention side by side in every block, shown as two layers"),
                      &falcon_h1_keys, &bamba_names);
}

}  // namespace headscope
