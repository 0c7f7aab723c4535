// Qwen 3 (Yang et al., Qwen3 Technical Report, 2025): as Llama, with an RMSNorm on every query and key before they are
// rotated, and heads of a width of their own.

#include "core/model/families/usual.h"

namespace headscope {

namespace {
void qwen3_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim")) c.dims.d_head = 128;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.qk_norm = QkNorm::per_head;
  keys.rotary(c, 10000);
  keys.activation("hidden_act", c.activation, "silu");
  c.gated_mlp = true;
  bool biased = c.bias.q;
  keys.flag("attention_bias", biased, false);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = biased;
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

WeightNames qwen3_names(const ModelConfig&) {
  WeightNames names;
  return names;
}
}  // namespace

Family qwen3_family();  // declared with all others in family.cpp
Family qwen3_family() {
  return usual_family("qwen3", "Qwen3ForCausalLM", "as llama, queries and keys normalised head by head", &qwen3_keys,
                      &qwen3_names);
}

}  // namespace headscope
