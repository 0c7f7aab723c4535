// Phi-3.5-MoE (Abdin et al., Phi-3 Technical Report, 2024): LayerNorms, biases where the file says so, and sixteen MLPs
// in every layer, of which each token passes through two, chosen as its makers' SparseMixer does it (Liu et al., GRIN:
// GRadient-INformed MoE, 2024).

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/mixtral.h"

namespace headscope {

namespace {
void phimoe_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::layer_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 1e6);
  keys.gated_mlp("hidden_act", c, "silu");
  const bool unembedding = c.bias.unembedding;
  keys.biases(c, "attention_bias");
  c.bias.norm = true;
  c.bias.unembedding = unembedding;
  keys.flag("lm_head_bias", c.bias.unembedding, false);
  keys.one_window(c);
  expert_keys(
      keys, c,
      {.count = "num_local_experts", .count_too = "num_experts", .width = "", .usual_count = 16, .usual_per_token = 2});
  if (keys.reading() && c.experts.per_token != 2)
    throw keys.json().error("num_experts_per_tok", "2", std::to_string(c.experts.per_token),
                            "its makers' router chooses two, one after the other");
  c.experts.score = RouterScore::near_best;
  keys.number("router_jitter_noise", c.experts.nearness, 0, 1e3, 0.01);
  keys.ends(c, false);
}
}  // namespace

Family phimoe_family();  // declared with all others in family.cpp
Family phimoe_family() {
  return usual_family("phimoe", "PhimoeForCausalLM",
                      to_say("LayerNorms, each token through two of several MLPs, weighed among those nearly as good"),
                      &phimoe_keys, &mixtral_names);
}

}  // namespace headscope
