// OLMoE (Muennighoff et al., OLMoE: Open Mixture-of-Experts Language Models, 2024): as Llama, with all queries of a
// token, and all its keys, normalised together, and many small MLPs in every layer, of which each token passes through
// a few.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void olmoe_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.qk_norm = QkNorm::full_width;
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  keys.cap("clip_qkv", c.clip_qkv, 0);
  expert_keys(keys, c, {.width = "", .usual_count = 64, .usual_per_token = 8});
  keys.flag("norm_topk_prob", c.experts.renormalized, false);
  keys.ends(c, false);
}
}  // namespace

Family olmoe_family();  // declared with all others in family.cpp
Family olmoe_family() {
  return usual_family(
      "olmoe", "OlmoeForCausalLM",
      to_say("as llama, queries and keys normalised over all heads, each token through a few of many MLPs"),
      &olmoe_keys, &usual_names);
}

}  // namespace headscope
