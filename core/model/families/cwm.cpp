// Code World Model (FAIR CodeGen Team, CWM: An Open-Weights LLM for Research on Code Generation with World Models,
// 2025): as Llama, with a window in three layers of four.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void cwm_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim")) c.dims.d_head = 128;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  if (keys.reading() && !keys.json().has("rope_parameters") && !keys.json().has("rope_scaling"))
    throw keys.json().error("rope_scaling", "how positions are scaled", "nothing");
  keys.rotary(c, 1e6);
  keys.gated_mlp("hidden_act", c, "silu");
  bool mlp = c.bias.up;
  keys.flag("mlp_bias", mlp, false);
  c.bias = BiasSet::none();
  c.bias.up = c.bias.down = mlp;
  int window = 0;
  if (keys.reading()) window = keys.json().integer("sliding_window", 0, config_limits::context, 8192);
  keys.layer_types(c, window, [](int layer) { return layer % 4 != 0; });
  keys.ends(c, false);
}
}  // namespace

Family cwm_family();  // declared with all others in family.cpp
Family cwm_family() {
  return usual_family("cwm", "CwmForCausalLM", to_say("as llama, three layers in four with a window"), &cwm_keys,
                      &usual_names);
}

}  // namespace headscope
