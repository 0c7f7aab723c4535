// Qwen3.5 with experts (Qwen Team, 2026), the half that reads text as a model by itself: as Qwen3.5, in every layer
// each token through a few of many small MLPs, and through one that is weighed by a gate of its own.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/qwen3_5.h"

namespace headscope {

void qwen3_5_moe_keys(ConfigMap& keys, ModelConfig& c) {
  qwen3_5_like(keys, c, 2, "");
  ExpertConfig& e = c.experts;
  expert_keys(keys, c, {.count_too = "", .usual_count = 256, .usual_per_token = 8, .usual_width = 512});
  c.dims.d_mlp = e.width;
  keys.integer("shared_expert_intermediate_size", e.shared_width, 1, config_limits::d_mlp, 512);
  e.shared_gate = e.renormalized = true;
  keys.only("norm_topk_prob", true, "the library divides weights of experts by their sum, whatever this says");
  if (keys.reading()) {
    if (const auto dense = keys.json().integers("mlp_only_layers", 0, config_limits::layers); dense && !dense->empty())
      throw keys.json().error("mlp_only_layers", "no layer", std::to_string(dense->size()) + " layers",
                              "in this family every layer has experts");
  }
  keys.ends(c, false);
}

WeightNames qwen3_5_moe_names(const ModelConfig& c) {
  WeightNames names = qwen3_5_names(c);
  names.experts.shared = "mlp.shared_expert.";
  names.experts.gate_up_of_all = "mlp.experts.gate_up_proj";
  names.experts.down_of_all = "mlp.experts.down_proj";
  names.experts.rows = true;
  return names;
}

Family qwen3_5_moe_text_family();  // declared with all others in family.cpp
Family qwen3_5_moe_text_family() {
  return usual_family("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM",
                      to_say("as qwen3_5_text, each token through a few of many MLPs"), &qwen3_5_moe_keys,
                      &qwen3_5_moe_names);
}

}  // namespace headscope
