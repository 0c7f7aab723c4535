// InternLM 3 (InternLM Team, 2025): as Llama, with heads of a width of their own.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void internlm3_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim") && !keys.json().null("head_dim")) c.dims.d_head = 128;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  // What the library writes today, or else what published files say; both are the same.
  const bool published = keys.reading() && !keys.json().has("attention_bias");
  keys.biases(c, published ? "qkv_bias" : "attention_bias", published ? "bias" : "mlp_bias");
  keys.ends(c, false);
}
}  // namespace

Family internlm3_family();  // declared with all others in family.cpp
Family internlm3_family() {
  return usual_family("internlm3", "InternLM3ForCausalLM", to_say("as llama, heads of a width of their own"),
                      &internlm3_keys, &usual_names);
}

}  // namespace headscope
