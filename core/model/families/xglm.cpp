// XGLM (Lin et al., Few-shot Learning with Multilingual Language Models, 2022): Tensor2Tensor's sinusoids from row 2,
// embeddings multiplied by √d_model.

#include <cmath>

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void xglm_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.layers = "num_layers",
                   .heads = "attention_heads",
                   .kv_heads = "",
                   .width = "d_model",
                   .d_head = "",
                   .mlp = "ffn_dim"});
  keys.norm(c, NormKind::layer_norm, "", 1e-5);
  c.position = PositionKind::learned;
  c.sinusoids = c.sinusoids_to_end = true;
  c.position_offset = 2;
  if (keys.reading() && c.dims.d_model < 4)
    throw keys.json().error("d_model", "4 or more, of which sinusoids are made", std::to_string(c.dims.d_model));
  keys.activation("activation_function", c.activation, "gelu");
  bool scaled = c.embedding_scale != 1;
  keys.flag("scale_embedding", scaled, true);
  c.embedding_scale = scaled ? std::sqrt(static_cast<double>(c.dims.d_model)) : 1;
  keys.only("add_cross_attention", false, "attention to a second text is not read in this family");
  keys.ends(c, true);
}

WeightNames xglm_names(const ModelConfig&) {
  WeightNames names;
  names.positions = "embed_positions";
  names.ln1 = "self_attn_layer_norm";
  names.ln2 = "final_layer_norm";
  names.o = "self_attn.out_proj";
  names.up = "fc1";
  names.down = "fc2";
  names.final_norm = "layer_norm";
  return names;
}
}  // namespace

Family xglm_family();  // declared with all others in family.cpp
Family xglm_family() {
  return usual_family("xglm", "XGLMForCausalLM", to_say("sinusoids from row 2, embedding times √d_model, GELU"),
                      &xglm_keys, &xglm_names);
}

}  // namespace headscope
