// LFM2 (Liquid AI, LFM2 Technical Report, 2025): most layers are a gated convolution of a few tokens in place of
// attention; queries and keys are normalised head by head.

#include "core/model/families/lfm2.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/model/families/hybrid.h"

namespace headscope {

namespace {
namespace limit = config_limits;

void lfm2_width(ConfigMap& keys, ModelConfig& c) {
  bool adjusted = false;
  if (!keys.reading()) return keys.flag("block_auto_adjust_ff_dim", adjusted, true);
  if (!keys.json().flag("block_auto_adjust_ff_dim", true)) return;
  const double times = keys.json().number("block_ffn_dim_multiplier", 1e-3, 1e3, 1);
  const int of = keys.json().integer("block_multiple_of", 1, limit::d_mlp, 256);
  const auto width = static_cast<std::int64_t>(times * static_cast<int>(2.0 * c.dims.d_mlp / 3));
  const std::int64_t rounded = of * ((width + of - 1) / of);
  if (rounded < 1 || rounded > limit::d_mlp)
    throw keys.json().error("block_ffn_dim_multiplier", fmt::format("an MLP of 1 to {} numbers", limit::d_mlp),
                            std::to_string(rounded),
                            fmt::format("{} · 2 ÷ 3 of {}, up to a multiple of {}", times, c.dims.d_mlp, of));
  c.dims.d_mlp = static_cast<int>(rounded);
}

void lfm2_layers(ConfigMap& keys, ModelConfig& c) {
  ModelDims& d = c.dims;
  std::vector<Mixer> mixers;
  if (!keys.reading()) {
    std::vector<std::string> types;
    for (int layer = 0; layer < d.layers; ++layer) types.emplace_back(d.attends(layer) ? "full_attention" : "conv");
    keys.put("layer_types", types);
    if (!c.state_space) return;
  } else {
    const auto attending = keys.json().integers("full_attn_idxs", 0, d.layers - 1);
    mixers = hybrid_layer_types(keys, c, "layer_types", attending ? Mixer::state_space : Mixer::attention,
                                {{"conv", Mixer::state_space}});
    for (int layer = 0; attending && !keys.json().has("layer_types") && layer < d.layers; ++layer)
      if (std::ranges::count(*attending, layer) > 0) mixers[static_cast<std::size_t>(layer)] = Mixer::attention;
    if (std::ranges::count(mixers, Mixer::state_space) == 0) return settle_mixers(c, std::move(mixers));
    c.state_space.emplace().lane = StateSpaceConfig::Lane::convolution;
    d.state_kind = StateKind::convolution;
  }
  StateSpaceConfig& s = *c.state_space;
  keys.integer("conv_L_cache", s.convolution, 1, limit::d_head, 3);
  keys.flag("conv_bias", s.bias, false);
  s.convolution_bias = s.bias;
  if (!keys.reading()) return;
  d.d_inner = d.lanes = d.state_groups = d.convolved = d.d_model;
  d.d_state = 1;
  settle_heads(keys, c, mixers, "hidden_size", "hidden_size");
  settle_mixers(c, std::move(mixers));
}

}  // namespace

void lfm2_like(ConfigMap& keys, ModelConfig& c) {
  keys.norm(c, NormKind::rms_norm, "norm_eps", 1e-5);
  c.qk_norm = QkNorm::per_head;
  keys.rotary(c, 1e6);
  c.activation = Activation::silu;
  c.gated_mlp = true;
  c.bias = BiasSet::none();
  lfm2_layers(keys, c);
}

void lfm2_ends(ConfigMap& keys, ModelConfig& c) {
  keys.ends(c, true);
  if (keys.reading()) c.tied_embeddings = keys.json().flag("tie_embedding", c.tied_embeddings);
}

WeightNames lfm2_names(const ModelConfig&) {
  WeightNames names;
  names.ln1 = "operator_norm", names.ln2 = "ffn_norm", names.final_norm = "embedding_norm";
  names.q_norm = "self_attn.q_layernorm", names.k_norm = "self_attn.k_layernorm", names.o = "self_attn.out_proj";
  names.gate = "feed_forward.w1", names.up = "feed_forward.w3", names.down = "feed_forward.w2";
  names.state_space.in = "conv.in_proj", names.state_space.convolution = "conv.conv";
  names.state_space.out = "conv.out_proj";
  return names;
}

namespace {
void lfm2_keys(ConfigMap& keys, ModelConfig& c) {
  const bool older = keys.reading() && keys.json().has("block_ff_dim");
  keys.extents(c, {.mlp = older ? "block_ff_dim" : "intermediate_size", .usual_kv_heads = 8});
  if (older) (void)keys.json().has("intermediate_size");
  lfm2_width(keys, c);
  lfm2_like(keys, c);
  lfm2_ends(keys, c);
}
}  // namespace

Family lfm2_family();  // declared with all others in family.cpp
Family lfm2_family() {
  return usual_family("lfm2", "Lfm2ForCausalLM",
                      to_say("queries and keys normalised head by head, most layers a gated short convolution"),
                      &lfm2_keys, &lfm2_names);
}

}  // namespace headscope
