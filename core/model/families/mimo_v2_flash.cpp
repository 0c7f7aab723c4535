// MiMo-V2-Flash (Xiaomi LLM-Core, MiMo-V2-Flash Technical Report, 2026): five layers in six with a window, twice as
// many key heads and a learned sink in every softmax; values narrower than keys, and scaled; a third of every head
// rotated; experts chosen by sigmoids behind the first layer.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void mimo_widths(ModelConfig& c) {
  ModelDims& d = c.dims;
  for (int layer = 0; layer < d.layers; ++layer)
    d.widths.push_back({c.window(layer) > 0 ? 2 * d.kv_heads : d.kv_heads, d.d_head, d.d_mlp});
  for (int layer = 0; layer < d.layers; ++layer) c.sink_layers.push_back(c.window(layer) > 0);
  c.learned_sinks = !c.windows.empty();
  if (c.windows.empty()) d.widths.clear(), c.sink_layers.clear();
}

void mimo_v2_flash_keys(ConfigMap& keys, ModelConfig& c) {
  ModelDims& d = c.dims;
  keys.extents(c, {.usual_kv_heads = 4});
  if (keys.reading() && !keys.json().has("head_dim")) d.d_head = 192;
  int value = d.value_width();
  keys.integer("v_head_dim", value, 1, config_limits::d_head, 128);
  if (keys.reading() && value != d.d_head) d.d_value = value;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  int window = 0;
  if (keys.reading()) {
    window = keys.json().integer("sliding_window", 0, config_limits::context, 129);
    if (keys.json().has("sliding_window_size"))
      window = keys.json().integer("sliding_window_size", 0, config_limits::context) + 1;
  }
  std::optional<std::vector<int>> pattern;  // as published
  if (keys.reading()) pattern = keys.json().integers("hybrid_layer_pattern", 0, 1);
  if (pattern && static_cast<int>(pattern->size()) != d.layers)
    throw keys.json().error("hybrid_layer_pattern", fmt::format("a number for each of {} layers", d.layers),
                            std::to_string(pattern->size()));
  keys.layer_types(c, window,
                   [&](int layer) { return pattern ? nth(*pattern, layer) == 1 : layer > 0 && (layer + 1) % 6 != 0; });
  if (keys.reading()) {
    const int twice = keys.json().integer("swa_num_key_value_heads", 1, 2 * config_limits::heads, 2 * d.kv_heads);
    if (twice != 2 * d.kv_heads)
      throw keys.json().error("swa_num_key_value_heads", "twice num_key_value_heads = " + std::to_string(d.kv_heads),
                              std::to_string(twice));
    keys.only("add_swa_attention_sink_bias", true, "layers with a window have sinks in the library");
    keys.only("add_full_attention_sink_bias", false, "layers without a window have none in the library");
    mimo_widths(c);
    if (!c.windows.empty() && d.heads % (2 * d.kv_heads) != 0)
      throw keys.json().error("num_key_value_heads",
                              "so many that twice as many divide num_attention_heads = " + std::to_string(d.heads),
                              std::to_string(d.kv_heads), "layers with a window have twice as many");
  }
  keys.rotary_by_window(c, 5e6, 1e4, "swa_rope_theta", "rope_theta", 0.334, "partial_rotary_factor", true);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  c.bias.o = false;
  if (!keys.reading() || !keys.json().null("attention_value_scale"))
    keys.number("attention_value_scale", c.value_scale, 1e-6, 1e6, 0.707);
  expert_keys(keys, c,
              {.count = "n_routed_experts",
               .count_too = "num_local_experts",
               .usual_count = 256,
               .usual_per_token = 8,
               .usual_width = 2048});
  listed_sparse_layers(keys, c, 1);
  if (!keys.reading() || !keys.json().null("routed_scaling_factor"))
    keys.number("routed_scaling_factor", c.experts.scale, 1e-6, 1e6, 1);
  deepseek_router(keys, c.experts, 1, 1, true);
  keys.ends(c, false);
}

}  // namespace

Family mimo_v2_flash_family();  // declared with all others in family.cpp
Family mimo_v2_flash_family() {
  Family made = usual_family("mimo_v2_flash", "MiMoV2FlashForCausalLM",
                             to_say("layers with a window have more key heads and learned sinks, values scaled, each "
                                    "token through a few of many MLPs"),
                             &mimo_v2_flash_keys, &deepseek_names);
  made.read_weights = [](const WeightSource& source, const ModelConfig& config) {
    WeightNames names = deepseek_names(config);
    const std::string published = "self_attn.attention_sink_bias";
    for (int layer = 0; layer < config.dims.layers; ++layer)
      if (source.contains("model.layers." + std::to_string(layer) + "." + published)) names.sinks = published;
    return read_usual_weights(source, config, names);
  };
  return made;
}

}  // namespace headscope
