// HyperCLOVA X SEED Think (NAVER Cloud, 2025): as Granite, whose logits are multiplied, and with norms behind attention
// and MLP too.

#include <cmath>

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void hyperclovax_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  bool both = c.norm_place == NormPlace::both;
  keys.flag("use_post_norm", both, true);
  c.norm_place = both ? NormPlace::both : NormPlace::before;
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.number("embedding_multiplier", c.embedding_scale, -1e6, 1e6, 1);
  keys.number("residual_multiplier", c.residual_scale, -1e6, 1e6, 1);
  double scale = c.score_scale.value_or(1);
  keys.number("attention_multiplier", scale, -1e6, 1e6, 1 / std::sqrt(static_cast<double>(c.dims.d_head)));
  c.score_scale = scale;
  keys.number("logits_scaling", c.logit_scale, -1e6, 1e6, 1);
  keys.biases(c, "attention_bias", "mlp_bias");
  keys.ends(c, false);
}

WeightNames hyperclovax_names(const ModelConfig&) {
  WeightNames names;
  names.ln1_post = "post_norm1";
  names.ln2_post = "post_norm2";
  return names;
}
}  // namespace

Family hyperclovax_family();  // declared with all others in family.cpp
Family hyperclovax_family() {
  return usual_family("hyperclovax", "HyperCLOVAXForCausalLM",
                      to_say("as granite, norms before and behind attention and MLP"), &hyperclovax_keys,
                      &hyperclovax_names);
}

}  // namespace headscope
