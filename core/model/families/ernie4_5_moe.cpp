// ERNIE 4.5 with experts (Baidu, ERNIE 4.5 Technical Report, 2025): as ERNIE 4.5, with many small MLPs in most layers,
// of which each token passes through a few, and some that take every token.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
/// Layers from the one on, up to the other, every so manieth, have experts; −1: up to the last.
void sparse_range(ConfigMap& keys, ModelConfig& c) {
  ExpertConfig& e = c.experts;
  int first = 0, last = c.dims.layers - 1, step = 1;
  if (!keys.reading() && !e.layers.empty()) {
    const auto at = [&](int layer) { return e.at(layer); };
    while (first < last && !at(first)) ++first;
    while (last > first && !at(last)) --last;
    for (int next = first + 1; next <= last; ++next)
      if (at(next)) {
        step = next - first;
        break;
      }
  }
  keys.integer("moe_layer_start_index", first, 0, config_limits::layers, 1);
  keys.integer("moe_layer_end_index", last, -1, config_limits::layers, -1);
  keys.integer("moe_layer_interval", step, 1, config_limits::layers, 1);
  if (!keys.reading()) return;
  if (last < 0) last = c.dims.layers - 1;
  for (int layer = 0; layer < c.dims.layers; ++layer)
    e.layers.push_back((layer + 1) % step == 0 && layer >= first && layer <= last);
  if (!e.anywhere()) c.dims.experts = 0;
  if (!e.leaves_dense(c.dims.layers)) e.layers.clear();
}

void ernie4_5_moe_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.rotary.layout = RotaryLayout::interleaved;
  keys.rotary(c, 500000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "use_bias");
  c.bias.up = c.bias.down = c.bias.unembedding = c.bias.q;
  ExpertConfig& e = c.experts;
  expert_keys(keys, c,
              {.count = "moe_num_experts",
               .count_too = "",
               .per_token = "moe_k",
               .usual_count = 64,
               .usual_per_token = 6,
               .usual_width = 1536});
  int shared = e.width > 0 ? e.shared_width / e.width : 0;
  keys.integer("moe_num_shared_experts", shared, 0, 1 << 16, 2);
  e.shared_width = shared * e.width;
  e.correction = e.renormalized = true;
  e.own_bias = false;
  sparse_range(keys, c);
  keys.ends(c, true);
}

WeightNames ernie4_5_moe_names(const ModelConfig&) {
  WeightNames names;
  names.experts.correction = "mlp.moe_statics.e_score_correction_bias";
  names.experts.correction_is_row = true;
  return names;
}
}  // namespace

Family ernie4_5_moe_family();  // declared with all others in family.cpp
Family ernie4_5_moe_family() {
  return usual_family("ernie4_5_moe", "Ernie4_5_MoeForCausalLM",
                      to_say("as ernie4_5, each token through a few of many MLPs"), &ernie4_5_moe_keys,
                      &ernie4_5_moe_names);
}

}  // namespace headscope
