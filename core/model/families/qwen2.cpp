// Qwen 2 and 2.5 (Yang et al., Qwen2 Technical Report, 2024): as Llama, with biases on queries, keys and values alone.

#include "core/model/families/usual.h"

namespace headscope {

namespace {
void qwen2_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  keys.rotary(c, 10000);
  keys.activation("hidden_act", c.activation, "silu");
  c.gated_mlp = true;
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = true;
  bool windowed = keys.reading() ? false : !c.windows.empty();
  keys.flag("use_sliding_window", windowed, false);
  if (!keys.reading()) {
    if (windowed) keys.layer_types(c, 0, [](int) { return false; });
  } else {
    const int from = keys.json().integer("max_window_layers", 0, config_limits::layers, 28);
    const int window =
        keys.json().null("sliding_window") ? 0 : keys.json().integer("sliding_window", 0, config_limits::context, 4096);
    if (windowed)
      keys.layer_types(c, window, [&](int layer) { return layer >= from; });
    else
      (void)keys.json().has("layer_types");  // of a model without windows: all alike
  }
  keys.ends(c, false);
}

WeightNames qwen2_names(const ModelConfig&) {
  WeightNames names;
  return names;
}
}  // namespace

Family qwen2_family();  // declared with all others in family.cpp
Family qwen2_family() {
  return usual_family("qwen2", "Qwen2ForCausalLM", "as llama, biases on queries, keys and values", &qwen2_keys,
                      &qwen2_names);
}

}  // namespace headscope
