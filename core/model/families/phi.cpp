// Phi 1.5 and 2 (Li et al., Textbooks Are All You Need II, 2023): attention and MLP read the same norm, half of every
// head is rotated, everything has a bias, the unembedding too.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void phi_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-5);
  c.dims.parallel = c.shared_norm = true;
  keys.rotary(c, 10000, 0.5);
  keys.activation("hidden_act", c.activation, "gelu_new");
  c.bias.unembedding = true;
  bool normed = c.qk_norm != QkNorm::none;
  keys.flag("qk_layernorm", normed, false);
  c.qk_norm = normed ? QkNorm::per_head : QkNorm::none;
  c.bias.qk_norm = normed;
  keys.ends(c, false);
}

WeightNames phi_names(const ModelConfig&) {
  WeightNames names;
  names.o = "self_attn.dense";
  names.q_norm = "self_attn.q_layernorm";
  names.k_norm = "self_attn.k_layernorm";
  names.up = "mlp.fc1";
  names.down = "mlp.fc2";
  names.final_norm = "final_layernorm";
  return names;
}
}  // namespace

Family phi_family();  // declared with all others in family.cpp
Family phi_family() {
  return usual_family("phi", "PhiForCausalLM", to_say("attention and MLP in parallel behind one norm, rotary in part"),
                      &phi_keys, &phi_names);
}

}  // namespace headscope
