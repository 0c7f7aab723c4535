// dots.llm1 (rednote-hilab, dots.llm1 Technical Report, 2025): attention as in Qwen 3, experts as in DeepSeek V3.

#include "core/base/words.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void dots1_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  deepseek_experts(keys, c, {.width = 1408});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.qk_norm = QkNorm::per_head;
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  int from = config_limits::layers, window = 0;
  if (keys.reading()) {
    from = keys.json().integer("max_window_layers", 0, config_limits::layers, 62);
    if (!keys.json().null("sliding_window"))
      window = keys.json().integer("sliding_window", 0, config_limits::context, 4096);
  }
  keys.layer_types(c, window, [&](int layer) { return layer >= from; });
  keys.ends(c, false);
  if (c.experts.anywhere()) deepseek_router(keys, c.experts, 1, 1, false);
}
}  // namespace

Family dots1_family();  // declared with all others in family.cpp
Family dots1_family() {
  return usual_family("dots1", "Dots1ForCausalLM", to_say("as qwen3, each token through a few of many MLPs"),
                      &dots1_keys, &usual_names);
}

}  // namespace headscope
