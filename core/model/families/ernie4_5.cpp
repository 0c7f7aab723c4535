// ERNIE 4.5, dense (Baidu, ERNIE 4.5 Technical Report, 2025): as Llama, with adjacent pairs rotated, and biases in
// attention and MLP where the file says so.

#include "core/model/families/ernie4_5.h"

#include "core/base/words.h"

namespace headscope {

void ernie4_5_like(ConfigMap& keys, ModelConfig& c, RotaryLayout layout) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim") && !keys.json().null("head_dim")) c.dims.d_head = 128;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.rotary.layout = layout;
  keys.rotary(c, 500000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "use_bias");
  c.bias.up = c.bias.down = c.bias.q;
  keys.ends(c, true);
}

namespace {
void ernie4_5_keys(ConfigMap& keys, ModelConfig& c) {
  ernie4_5_like(keys, c, RotaryLayout::interleaved);
}
}  // namespace

Family ernie4_5_family();  // declared with all others in family.cpp
Family ernie4_5_family() {
  return usual_family("ernie4_5", "Ernie4_5ForCausalLM", to_say("as llama, adjacent pairs rotated"), &ernie4_5_keys,
                      &usual_names);
}

}  // namespace headscope
