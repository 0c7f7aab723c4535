// HunYuan dense (Tencent, Hunyuan-0.5B to 7B, 2025): as Llama, with queries and keys normalised head by head behind
// their rotation.

#include "core/base/words.h"
#include "core/model/families/hunyuan.h"

namespace headscope {

void hunyuan_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.qk_norm = QkNorm::per_head;
  c.norm_after_rotation = true;
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  keys.only("use_qk_norm", true, "a HunYuan without a norm of queries and keys is not read");
  keys.ends(c, false);
}

WeightNames hunyuan_names(const ModelConfig&) {
  WeightNames names;
  names.q_norm = "self_attn.query_layernorm";
  names.k_norm = "self_attn.key_layernorm";
  return names;
}

Family hunyuan_v1_dense_family();  // declared with all others in family.cpp
Family hunyuan_v1_dense_family() {
  return usual_family("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM",
                      to_say("as llama, queries and keys normalised by head behind their rotation"), &hunyuan_keys,
                      &hunyuan_names);
}

}  // namespace headscope
