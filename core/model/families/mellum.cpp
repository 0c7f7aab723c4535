// Mellum 2 (JetBrains, 2026): as Qwen 3 with experts, layers with a window and others by the file's list, each kind
// with a rotation of its own.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void mellum_keys(ConfigMap& keys, ModelConfig& c) {
  extents_of_width(keys, c, 128, {.usual_kv_heads = 4});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.qk_norm = QkNorm::per_head;
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  int window = 0;
  if (keys.reading() && !keys.json().null("sliding_window"))
    window = keys.json().integer("sliding_window", 0, config_limits::context, 1024);
  keys.layer_types(c, window, [](int) { return false; });
  keys.rotary_by_window(c, 500000, 10000, "");
  expert_keys(keys, c, {.usual_count = 64, .usual_per_token = 8, .usual_width = 896});
  keys.flag("norm_topk_prob", c.experts.renormalized, true);
  listed_sparse_layers(keys, c, 0);
  keys.ends(c, false);
}
}  // namespace

Family mellum_family();  // declared with all others in family.cpp
Family mellum_family() {
  return usual_family("mellum", "MellumForCausalLM", to_say("as qwen3_moe, windows and rotary bases by layer"),
                      &mellum_keys, &usual_names);
}

}  // namespace headscope
