// BitNet b1.58 (Microsoft, BitNet b1.58 2B4T Technical Report, 2025): as Llama, with a norm of what all heads put out
// and one behind the gate of the MLP, squared ReLU. What its matrices are rounded to, and what they read, is
// "quantization_config" of the folder (core/model/formats/few_bits_bitnet.cpp).

#include <fmt/format.h>

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void bitnet_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && c.dims.heads * c.dims.d_head != c.dims.d_model)
    throw keys.json().error(
        "head_dim", fmt::format("heads as wide as hidden_size = {} together, as the norm behind them", c.dims.d_model),
        fmt::format("{} heads of {}", c.dims.heads, c.dims.d_head));
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 500000);
  keys.gated_mlp("hidden_act", c, "relu2");
  keys.biases(c, "attention_bias");
  c.z_norm = c.mlp_norm = true;
  c.mlp_norm_kind = NormKind::rms_norm;
  keys.ends(c, false);
}

WeightNames bitnet_names(const ModelConfig&) {
  WeightNames names;
  names.z_norm = "self_attn.attn_sub_norm", names.mlp_norm = "mlp.ffn_sub_norm";
  return names;
}
}  // namespace

Family bitnet_family();  // declared with all others in family.cpp
Family bitnet_family() {
  return usual_family("bitnet", "BitNetForCausalLM",
                      to_say("as llama, norms of what heads put out and behind the gate of the MLP"), &bitnet_keys,
                      &bitnet_names);
}

}  // namespace headscope
