// Qwen 1.5 and 2 with experts (Yang et al., Qwen2 Technical Report, 2024): as Qwen 2, each token through a few of many
// small MLPs, and through one that is weighed by a gate of its own.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void qwen2_moe_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  bool biased = c.bias.q;
  keys.flag("qkv_bias", biased, true);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = biased;
  bool windowed = !keys.reading() && !c.windows.empty();
  keys.flag("use_sliding_window", windowed, false);
  int window = 0, before = 0;
  if (keys.reading()) {  // asked for where there are no windows too
    before = keys.json().integer("max_window_layers", 0, config_limits::layers, 28);
    if (!keys.json().null("sliding_window"))
      window = keys.json().integer("sliding_window", 0, config_limits::context, 4096);
    (void)keys.json().has("layer_types");
  }
  if (windowed) keys.layer_types(c, window, [&](int layer) { return layer % 2 == 0 && layer < before; });
  expert_keys(keys, c, {.count_too = "", .usual_count = 60, .usual_per_token = 4, .usual_width = 1408});
  keys.integer("shared_expert_intermediate_size", c.experts.shared_width, 1, config_limits::d_mlp, 5632);
  c.experts.shared_gate = true;
  keys.flag("norm_topk_prob", c.experts.renormalized, false);
  sparse_layers(keys, c);
  keys.ends(c, false);
}

WeightNames qwen2_moe_names(const ModelConfig&) {
  WeightNames names;
  names.experts.shared = "mlp.shared_expert.";
  return names;
}
}  // namespace

Family qwen2_moe_family();  // declared with all others in family.cpp
Family qwen2_moe_family() {
  return usual_family("qwen2_moe", "Qwen2MoeForCausalLM",
                      to_say("as qwen2, each token through a few of many MLPs and one that has a gate"),
                      &qwen2_moe_keys, &qwen2_moe_names);
}

}  // namespace headscope
