// Qwen 3 with experts (Yang et al., Qwen3 Technical Report, 2025): as Qwen 3, with many small MLPs in the layers that
// the file does not except, of which each token passes through a few.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void qwen3_moe_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.qk_norm = QkNorm::per_head;
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  bool windowed = !c.windows.empty();
  keys.flag("use_sliding_window", windowed, false);
  if (windowed)
    keys.one_window(c, 4096);
  else if (keys.reading())
    (void)keys.json().has("sliding_window");  // of a model without windows
  expert_keys(keys, c, {.usual_count = 128, .usual_per_token = 8, .usual_width = 768});
  keys.flag("norm_topk_prob", c.experts.renormalized, false);
  sparse_layers(keys, c);
  keys.ends(c, false);
}
}  // namespace

Family qwen3_moe_family();  // declared with all others in family.cpp
Family qwen3_moe_family() {
  return usual_family("qwen3_moe", "Qwen3MoeForCausalLM", to_say("as qwen3, each token through a few of many MLPs"),
                      &qwen3_moe_keys, &usual_names);
}

}  // namespace headscope
