// Qwen3-Next (Qwen Team, 2025): attention and the gated delta rule as in Qwen3.5, which came later; each token through
// a few of many small MLPs, and through one that is weighed by a gate of its own.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/qwen3_5.h"

namespace headscope {

namespace {
void qwen3_next_keys(ConfigMap& keys, ModelConfig& c) {
  qwen3_5_like(keys, c, 2);
  expert_keys(keys, c, {.usual_count = 512, .usual_per_token = 10, .usual_width = 512});
  keys.integer("shared_expert_intermediate_size", c.experts.shared_width, 1, config_limits::d_mlp, 512);
  c.experts.shared_gate = true;
  keys.flag("norm_topk_prob", c.experts.renormalized, true);
  sparse_layers(keys, c);
  keys.ends(c, false);
}

WeightNames qwen3_next_names(const ModelConfig& c) {
  WeightNames names = qwen3_5_names(c);
  names.state_space.grouped = "linear_attn.in_proj_qkvz";
  names.state_space.grouped_rates = "linear_attn.in_proj_ba";
  names.experts.shared = "mlp.shared_expert.";
  return names;
}
}  // namespace

Family qwen3_next_family();  // declared with all others in family.cpp
Family qwen3_next_family() {
  return usual_family("qwen3_next", "Qwen3NextForCausalLM",
                      to_say("as qwen3_5_text, each token through a few of many MLPs"), &qwen3_next_keys,
                      &qwen3_next_names);
}

}  // namespace headscope
