// Qwen3.5 (Qwen Team, 2026), the half that reads text as a model by itself: three layers in four keep a state by the
// gated delta rule (Yang, Kautz & Hatamizadeh, Gated Delta Networks, 2025) in place of attention; attention is gated,
// of a head a quarter is rotated.

#include "core/base/words.h"
#include "core/model/families/qwen3_5.h"

namespace headscope {

void qwen3_5_like(ConfigMap& keys, ModelConfig& c, int kv_heads, const std::string& mlp) {
  const ConfigMap::Extents extents{.mlp = mlp, .usual_kv_heads = kv_heads};
  if (keys.reading() && !keys.json().has("head_dim")) {
    const ConfigReader filled = keys.json().with_defaults({{"head_dim", 256}});
    ConfigMap own(filled);
    own.extents(c, extents);
  } else {
    keys.extents(c, extents);
  }
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.norm_gain_plus_one = true;
  c.qk_norm = QkNorm::per_head;
  c.output_gate = true;
  keys.rotary(c, 10000, 0.25);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  c.bias.output_gate = c.bias.q;  // one matrix makes both
  delta_states(keys, c);
}

void qwen3_5_keys(ConfigMap& keys, ModelConfig& c) {
  qwen3_5_like(keys, c, 4);
  keys.ends(c, false);
}

WeightNames qwen3_5_names(const ModelConfig&) {
  WeightNames names;
  StateSpaceNames& states = names.state_space;
  states = state_space_names("linear_attn.");
  return names;
}

Family qwen3_5_text_family();  // declared with all others in family.cpp
Family qwen3_5_text_family() {
  return usual_family("qwen3_5_text", "Qwen3_5ForCausalLM",
                      to_say("as qwen3, heads gated, most layers the gated delta rule in place of attention"),
                      &qwen3_5_keys, &qwen3_5_names);
}

}  // namespace headscope
