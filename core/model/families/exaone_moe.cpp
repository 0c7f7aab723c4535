// EXAONE with experts (LG AI Research, K-EXAONE Technical Report, 2026): windows and rotation as in EXAONE 4.0, norms
// before attention and MLP, experts as in DeepSeek V3.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/exaone4.h"

namespace headscope {

namespace {
void exaone_moe_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.usual_kv_heads = 32});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.qk_norm = QkNorm::per_head;
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  exaone4_windows(keys, c);
  ExpertConfig& e = c.experts;
  expert_keys(keys, c, {.usual_count = 64, .usual_per_token = 8, .usual_width = 1024});
  int shared = e.shared_width / e.width;
  keys.integer("num_shared_experts", shared, 1, 64, 1);
  e.shared_width = shared * e.width;
  keys.number("routed_scaling_factor", e.scale, 1e-6, 1e6, 2.5);
  deepseek_router(keys, e, 1, 1, true);
  listed_sparse_layers(keys, c, 1);
  keys.ends(c, false);
}

WeightNames exaone_moe_names(const ModelConfig&) {
  WeightNames names;
  names.experts.correction_too = "mlp.e_score_correction_bias";
  names.experts.gate_up_of_all = "mlp.experts.gate_up_proj";
  names.experts.down_of_all = "mlp.experts.down_proj";
  names.experts.rows = true;
  return names;
}
}  // namespace

Family exaone_moe_family();  // declared with all others in family.cpp
Family exaone_moe_family() {
  return usual_family("exaone_moe", "ExaoneMoeForCausalLM",
                      to_say("as exaone4 with norms before, each token through a few of many MLPs"), &exaone_moe_keys,
                      &exaone_moe_names);
}

}  // namespace headscope
