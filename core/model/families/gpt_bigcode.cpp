// StarCoder and SantaCoder (Li et al., StarCoder: may the source be with you!, 2023): as GPT-2, with one key head for
// all queries (Shazeer, Fast Transformer Decoding, 2019).

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void gpt_bigcode_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, gpt2_extents());
  keys.norm(c, NormKind::layer_norm, "layer_norm_epsilon", 1e-5);
  c.position = PositionKind::learned;
  keys.activation("activation_function", c.activation, "gelu_pytorch_tanh");
  keys.flag("scale_attn_weights", c.scale_by_inverse_sqrt_d, true);
  bool one_key_head = c.dims.kv_heads == 1;
  keys.flag("multi_query", one_key_head, true);
  c.dims.kv_heads = one_key_head ? 1 : c.dims.heads;
  keys.only("add_cross_attention", false, "only decoders without an encoder can be traced");
  keys.ends(c, true);
}

WeightNames gpt_bigcode_names(const ModelConfig&) {
  WeightNames names = gpt2_names();
  names.positions = "wpe";
  names.ln2 = "ln_2";
  names.qkv = "attn.c_attn";
  names.fused = FusedQkv::by_group;
  names.o = "attn.c_proj";
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  names.ignored = {"attn.bias", "attn.masked_bias"};
  return names;
}
}  // namespace

Family gpt_bigcode_family();  // declared with all others in family.cpp
Family gpt_bigcode_family() {
  return usual_family("gpt_bigcode", "GPTBigCodeForCausalLM", to_say("as gpt2, one key head for all: StarCoder"),
                      &gpt_bigcode_keys, &gpt_bigcode_names);
}

}  // namespace headscope
