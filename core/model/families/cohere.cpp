// Cohere Command-R (Cohere, 2024): attention and MLP in parallel behind one norm without bias, adjacent pairs rotated,
// logits multiplied; norms of queries and keys with gains of every head, where the file says so.

#include "core/model/families/cohere.h"

#include "core/base/words.h"

namespace headscope {

void cohere_like(ConfigMap& keys, ModelConfig& c, double base) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-5);
  c.dims.parallel = c.shared_norm = true;
  c.rotary.layout = RotaryLayout::interleaved;
  keys.rotary(c, base);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  keys.number("logit_scale", c.logit_scale, -1e6, 1e6, 0.0625);
}

namespace {
void cohere_keys(ConfigMap& keys, ModelConfig& c) {
  cohere_like(keys, c, 500000);
  bool normed = c.qk_norm != QkNorm::none;
  keys.flag("use_qk_norm", normed, false);
  c.qk_norm = normed ? QkNorm::per_head : QkNorm::none;
  c.qk_norm_by_head = normed;
  keys.ends(c, true);
}
}  // namespace

Family cohere_family();  // declared with all others in family.cpp
Family cohere_family() {
  return usual_family("cohere", "CohereForCausalLM",
                      to_say("attention and MLP in parallel behind one norm, adjacent rotary pairs, logits scaled"),
                      &cohere_keys, &usual_names);
}

}  // namespace headscope
