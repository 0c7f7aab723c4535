// GPT-J (Wang & Komatsuzaki, GPT-J-6B, 2021): attention and MLP in parallel behind one norm, adjacent pairs of part of
// every head rotated, no biases in attention.

#include "core/model/families/gptj.h"

#include <algorithm>

#include "core/base/words.h"

namespace headscope {

void gptj_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, gpt2_extents());
  keys.norm(c, NormKind::layer_norm, "layer_norm_epsilon", 1e-5);
  c.dims.parallel = c.shared_norm = true;
  c.position = PositionKind::rotary;
  c.rotary.layout = RotaryLayout::interleaved;
  int width = c.rotary.width > 0 ? c.rotary.width : c.dims.d_head;
  keys.integer("rotary_dim", width, 2, c.dims.d_head, std::min(64, c.dims.d_head));
  if (keys.reading() && width % 2 != 0)
    throw keys.json().error("rotary_dim", "an even number, since rotary positions turn pairs", std::to_string(width));
  c.rotary.width = width == c.dims.d_head ? 0 : width;
  keys.activation("activation_function", c.activation, "gelu_new");
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = false;
  c.bias.unembedding = true;
  keys.ends(c, false);
}

WeightNames gptj_names(const ModelConfig&) {
  WeightNames names = gpt2_names();
  names.q = "attn.q_proj";
  names.k = "attn.k_proj";
  names.v = "attn.v_proj";
  names.o = "attn.out_proj";
  names.up = "mlp.fc_in";
  names.down = "mlp.fc_out";
  names.ignored = {"attn.bias", "attn.masked_bias", "attn.causal_mask", "attn.embed_positions"};
  return names;
}

Family gptj_family();  // declared with all others in family.cpp
Family gptj_family() {
  return usual_family("gptj", "GPTJForCausalLM",
                      to_say("attention and MLP in parallel behind one norm, adjacent rotary pairs"), &gptj_keys,
                      &gptj_names);
}

}  // namespace headscope
