// GPT-Neo (Black et al., GPT-Neo, 2021; TinyStories: Eldan & Li, 2023): as GPT-2, scores not divided by √d_head, and a
// sliding window in the layers that are called local.

#include <algorithm>

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void gpt_neo_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.layers = "num_layers", .heads = "num_heads", .kv_heads = "", .d_head = "", .mlp_factor = 4});
  keys.norm(c, NormKind::layer_norm, "layer_norm_epsilon", 1e-5);
  c.position = PositionKind::learned;
  c.scale_by_inverse_sqrt_d = false;
  keys.activation("activation_function", c.activation, "gelu_new");
  c.bias.q = c.bias.k = c.bias.v = false;
  int window = 0;
  for (const int each : c.windows) window = std::max(window, each);
  keys.integer("window_size", window, 1, config_limits::context, 256);
  keys.layers_repeated("attention_types", c, window);
  keys.ends(c, true);
}

WeightNames gpt_neo_names(const ModelConfig&) {
  WeightNames names = gpt2_names();
  names.positions = "wpe";
  names.ln2 = "ln_2";
  names.q = "attn.attention.q_proj";
  names.k = "attn.attention.k_proj";
  names.v = "attn.attention.v_proj";
  names.o = "attn.attention.out_proj";
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  names.ignored = {"attn.attention.bias", "attn.attention.masked_bias"};
  return names;
}
}  // namespace

Family gpt_neo_family();  // declared with all others in family.cpp
Family gpt_neo_family() {
  return usual_family("gpt_neo", "GPTNeoForCausalLM",
                      to_say("as gpt2, scores not scaled, every other layer with a window: TinyStories"), &gpt_neo_keys,
                      &gpt_neo_names);
}

}  // namespace headscope
