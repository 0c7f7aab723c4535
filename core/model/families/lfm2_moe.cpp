// LFM2 with experts (Liquid AI, LFM2 Technical Report, 2025): as LFM2, behind the first layers each token through a few
// of many small MLPs, chosen by corrected sigmoids.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/lfm2.h"

namespace headscope {

namespace {
void lfm2_moe_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.usual_kv_heads = 8});
  lfm2_like(keys, c);
  ExpertConfig& e = c.experts;
  expert_keys(keys, c, {.count_too = "", .usual_count = 32, .usual_per_token = 4, .usual_width = 1792});
  first_layers_dense(keys, c, "num_dense_layers", 2);
  e.score = RouterScore::sigmoid;
  e.sum_floor = 1e-6;
  keys.flag("use_expert_bias", e.correction, true);
  keys.flag("norm_topk_prob", e.renormalized, true);
  keys.number("routed_scaling_factor", e.scale, 1e-6, 1e6, 1);
  lfm2_ends(keys, c);
}

WeightNames lfm2_moe_names(const ModelConfig& c) {
  WeightNames names = lfm2_names(c);
  names.experts.router = "feed_forward.gate", names.experts.correction = "feed_forward.expert_bias";
  names.experts.expert = "feed_forward.experts.";
  names.experts.gate = "w1", names.experts.up = "w3", names.experts.down = "w2";
  names.experts.gate_up_of_all = "feed_forward.experts.gate_up_proj";
  names.experts.down_of_all = "feed_forward.experts.down_proj";
  names.experts.rows = true;
  return names;
}
}  // namespace

Family lfm2_moe_family();  // declared with all others in family.cpp
Family lfm2_moe_family() {
  return usual_family("lfm2_moe", "Lfm2MoeForCausalLM", to_say("as lfm2, each token through a few of many MLPs"),
                      &lfm2_moe_keys, &lfm2_moe_names);
}

}  // namespace headscope
