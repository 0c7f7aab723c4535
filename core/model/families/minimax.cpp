// MiniMax-Text-01 (MiniMax, MiniMax-01: Scaling Foundation Models with Lightning Attention, 2025): most layers linear
// attention that decays at a head's own pace, the others attention; experts in every layer. A block adds to what its
// norm made of the stream, not to the stream: told here as norms of the stream itself, behind each sum.

#include <algorithm>

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/hybrid.h"
#include "core/model/families/mixtral.h"

namespace headscope {

namespace {
void lightning_layers(ConfigMap& keys, ModelConfig& c) {
  ModelDims& d = c.dims;
  if (!keys.reading()) return put_layer_types(keys, c, "layer_types");
  std::vector<Mixer> mixers =
      hybrid_layer_types(keys, c, "layer_types", Mixer::attention, {{"linear_attention", Mixer::state_space}});
  if (!keys.json().has("layer_types"))
    for (std::size_t layer = 1; layer < mixers.size(); layer += 2) mixers[layer] = Mixer::state_space;
  (void)keys.json().has("block_size");  // of how many tokens its own code makes at once: of no number
  if (std::ranges::count(mixers, Mixer::state_space) == 0) return settle_mixers(c, std::move(mixers));
  StateSpaceConfig& s = c.state_space.emplace();
  s.lane = StateSpaceConfig::Lane::head;
  s.steady = s.gated_norm = s.norm_before_gate = s.one_norm = s.sigmoid_gate = true;
  s.convolution = 1;
  s.convolution_bias = false;
  s.gated_epsilon = 1e-6;
  d.lanes = d.state_groups = d.heads;
  d.d_state = d.d_head;
  inner_extents(keys.json(), d, d.lanes, d.d_head, "head_dim");
  convolved_extents(keys.json(), d, "head_dim");
  settle_heads(keys, c, mixers, "num_attention_heads", "num_attention_heads");
  settle_mixers(c, std::move(mixers));
}

void minimax_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.norm_place = NormPlace::after_sum;
  c.embedding_norm = true;
  keys.rotary(c, 1e6);
  if (keys.reading() && c.rotary.width > 0)
    throw keys.json().error("partial_rotary_factor", "1", std::to_string(c.rotary.width),
                            "the definition rotates whole heads");
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  expert_keys(
      keys, c,
      {.count = "num_local_experts", .count_too = "num_experts", .width = "", .usual_count = 8, .usual_per_token = 2});
  c.experts.renormalized = true;
  Multipliers& m = c.multipliers;
  keys.number("full_attn_alpha_factor", c.attention_stream, -1e6, 1e6, 1);
  keys.number("full_attn_beta_factor", m.attention_out, -1e6, 1e6, 1);
  keys.number("linear_attn_alpha_factor", c.state_stream, -1e6, 1e6, 1);
  keys.number("linear_attn_beta_factor", m.state_out, -1e6, 1e6, 1);
  keys.number("mlp_alpha_factor", c.mlp_stream, -1e6, 1e6, 1);
  keys.number("mlp_beta_factor", m.mlp_out, -1e6, 1e6, 1);
  keys.ends(c, false);
  lightning_layers(keys, c);
}

WeightNames minimax_names(const ModelConfig& c) {
  WeightNames names = mixtral_names(c);
  names.norms_behind_sums = true;
  names.embedding_norm = "layers.0.input_layernorm";
  names.ln1 = "post_attention_layernorm", names.ln2 = "input_layernorm";
  StateSpaceNames& s = names.state_space;
  s.qkv = "self_attn.qkv_proj", s.gate = "self_attn.output_gate", s.norm = "self_attn.norm";
  s.slopes = "self_attn.slope_rate", s.out = "self_attn.out_proj";
  for (const char* made_of_slopes : {"self_attn.query_decay", "self_attn.key_decay", "self_attn.diagonal_decay"})
    names.ignored.emplace_back(made_of_slopes);
  return names;
}
}  // namespace

Family minimax_family();  // declared with all others in family.cpp
Family minimax_family() {
  return usual_family("minimax", "MiniMaxForCausalLM",
                      to_say("layers of linear attention that decays, and a few that attend, with experts"),
                      &minimax_keys, &minimax_names);
}

}  // namespace headscope
