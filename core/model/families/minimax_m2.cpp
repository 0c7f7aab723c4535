// MiniMax M2 (MiniMax, MiniMax-M2, 2025): as Mixtral, queries and keys normalised over all heads together, a part of
// every head rotated, experts chosen by sigmoids with a correction that their weights do not have.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void minimax_m2_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim")) c.dims.d_head = 128;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.qk_norm = QkNorm::full_width;
  double share = 1;
  if (keys.reading() && keys.json().has("rotary_dim"))  // as published
    share = static_cast<double>(keys.json().integer("rotary_dim", 2, c.dims.d_head)) / c.dims.d_head;
  keys.rotary(c, 5e6, share);
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  expert_keys(keys, c,
              {.count = "num_local_experts",
               .count_too = "num_experts",
               .width = "",
               .usual_count = 256,
               .usual_per_token = 8});
  c.experts.score = RouterScore::sigmoid;
  c.experts.correction = c.experts.renormalized = true;
  if (keys.reading()) {
    deepseek_only(keys, "scoring_func", "sigmoid");
    if (keys.json().has("use_qk_norm"))
      keys.only("use_qk_norm", true, "a MiniMax without a norm of queries and keys is not read");
  }
  keys.ends(c, false);
}

WeightNames minimax_m2_names(const ModelConfig&) {
  WeightNames names;
  names.layers_behind = true;
  names.experts.router = "block_sparse_moe.gate";
  names.experts.correction = "block_sparse_moe.e_score_correction_bias";
  names.experts.expert = "block_sparse_moe.experts.";
  names.experts.gate = "w1", names.experts.up = "w3", names.experts.down = "w2";
  return names;
}
}  // namespace

Family minimax_m2_family();  // declared with all others in family.cpp
Family minimax_m2_family() {
  return usual_family("minimax_m2", "MiniMaxM2ForCausalLM",
                      to_say("as mixtral, queries and keys normalised together, a part of every head rotated"),
                      &minimax_m2_keys, &minimax_m2_names);
}

}  // namespace headscope
