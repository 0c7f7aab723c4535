// CodeGen (Nijkamp et al., CodeGen, 2022): as GPT-J, with queries, values and keys stored in four chunks, one for each
// of the machines that it was trained on.

#include <algorithm>

#include "core/model/families/usual.h"

namespace headscope {

namespace {
void codegen_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading() && keys.json().integer("n_head", 1, config_limits::heads) % 4 != 0)
    throw keys.json().error("n_head", "a multiple of 4, in which queries, values and keys are stored",
                            std::to_string(keys.json().integer("n_head", 1, config_limits::heads)));
  keys.extents(c, {.layers = "n_layer",
                   .heads = "n_head",
                   .kv_heads = "",
                   .width = "n_embd",
                   .d_head = "",
                   .mlp = "n_inner",
                   .context = "n_positions",
                   .mlp_factor = 4});
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

WeightNames codegen_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {"transformer.", ""};
  names.embedding = "wte";
  names.block = "h.";
  names.ln1 = "ln_1";
  names.qkv = "attn.qkv_proj";
  names.fused = FusedQkv::four_chunks;
  names.o = "attn.out_proj";
  names.up = "mlp.fc_in";
  names.down = "mlp.fc_out";
  names.final_norm = "ln_f";
  names.ignored = {"attn.bias", "attn.masked_bias", "attn.causal_mask", "attn.embed_positions"};
  return names;
}
}  // namespace

Family codegen_family();  // declared with all others in family.cpp
Family codegen_family() {
  return usual_family("codegen", "CodeGenForCausalLM", "as gptj, queries, values and keys in four chunks",
                      &codegen_keys, &codegen_names);
}

}  // namespace headscope
