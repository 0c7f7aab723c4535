// Cohere Command A+ (Cohere, 2026): Command R7B, each token through a few of many MLPs, and where the file says so
// through one more, with which the others are added up or averaged; the first layers may have one MLP for all tokens
// and rotate without a window.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
/// RMSNorm where rms_norm_eps is a number, else LayerNorm.
void cohere2_moe_norms(ConfigMap& keys, ModelConfig& c) {
  const bool rms = keys.reading() ? keys.json().has("rms_norm_eps") : c.norm == NormKind::rms_norm;
  if (keys.reading()) (void)keys.json().has("layer_norm_eps");
  keys.norm(c, rms ? NormKind::rms_norm : NormKind::layer_norm, rms ? "rms_norm_eps" : "layer_norm_eps", 1e-5);
}

void cohere2_moe_experts(ConfigMap& keys, ModelConfig& c) {
  ExpertConfig& e = c.experts;
  expert_keys(
      keys, c,
      {.count_too = "", .width = "intermediate_size", .usual_count = 8, .usual_per_token = 2, .usual_width = 22528});
  int shared = e.shared_width / e.width;
  keys.integer("num_shared_experts", shared, 0, 1024, 0);
  e.shared_width = shared * e.width;
  std::string joined = e.shared_scale == 1 ? "sum" : "average",
              score = e.score == RouterScore::sigmoid ? "sigmoid" : "softmax";
  keys.text("shared_expert_combination_strategy", joined, "average");
  keys.text("expert_selection_fn", score, "softmax");
  keys.flag("norm_topk_prob", e.renormalized, true);
  // One MLP for all tokens is as wide as this says, or as an expert.
  if (!keys.reading()) return keys.integer("prefix_dense_intermediate_size", c.dims.d_mlp, 1, config_limits::d_mlp);
  c.dims.d_mlp = keys.json().integer("prefix_dense_intermediate_size", 1, config_limits::d_mlp, e.width);
  const bool average =
      keys.json().choice<bool>("shared_expert_combination_strategy", joined, {{"sum", false}, {"average", true}});
  if (average && shared > 0) e.scale = e.shared_scale = 0.5;
  e.score = keys.json().choice<RouterScore>(
      "expert_selection_fn", score, {{"softmax", RouterScore::softmax_of_chosen}, {"sigmoid", RouterScore::sigmoid}});
  if (e.score != RouterScore::sigmoid) e.renormalized = false;  // they add up to 1
}

/// Layers with a window rotate, and the first ones with one MLP for all tokens where their own pattern is 1: no window.
void cohere2_moe_layers(ConfigMap& keys, ModelConfig& c) {
  const auto dense = [&](int layer) { return !c.experts.at(layer); };
  int first = 1, every = 4, window = 0;
  if (!keys.reading()) {
    for (int layer = 0; layer < c.dims.layers; ++layer)
      if (dense(layer) && !c.turns(layer)) first = 2;
    keys.integer("prefix_dense_sliding_window_pattern", first, 1, config_limits::layers);
    return keys.layer_types(c, 0, [](int) { return false; });
  }
  first = keys.json().integer("prefix_dense_sliding_window_pattern", 1, config_limits::layers, first);
  every = keys.json().integer("sliding_window_pattern", 1, config_limits::layers, every);
  const int prefix = keys.json().integer("first_k_dense_replace", 0, config_limits::layers, 0);
  if (!keys.json().null("sliding_window"))
    window = keys.json().integer("sliding_window", 0, config_limits::context, 4096);
  keys.layer_types(c, window, [&](int layer) {
    return layer < prefix ? (layer + 1) % first != 0 : (layer - prefix + 1) % every != 0;
  });
  for (int layer = 0; layer < c.dims.layers; ++layer)
    c.layer_turns.push_back(c.window(layer) > 0 || (first == 1 && dense(layer)));
}

void cohere2_moe_keys(ConfigMap& keys, ModelConfig& c) {
  extents_of_width(keys, c, 128, {.mlp = ""});
  cohere2_moe_norms(keys, c);
  c.dims.parallel = c.shared_norm = true;
  c.rotary.layout = RotaryLayout::interleaved;
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  keys.number("logit_scale", c.logit_scale, -1e6, 1e6, 0.0625);
  cohere2_moe_experts(keys, c);
  listed_sparse_layers(keys, c, 0);
  cohere2_moe_layers(keys, c);
  keys.ends(c, true);
}
}  // namespace

Family cohere2_moe_family();  // declared with all others in family.cpp
Family cohere2_moe_family() {
  return usual_family("cohere2_moe", "Cohere2MoeForCausalLM",
                      to_say("as cohere2, each token through a few of many MLPs"), &cohere2_moe_keys, &usual_names);
}

}  // namespace headscope
