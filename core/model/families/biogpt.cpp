// BioGPT (Luo et al., BioGPT: Generative Pre-trained Transformer for Biomedical Text Generation and Mining, 2022):
// learned positions from row 2, embeddings multiplied by √d_model.

#include <cmath>

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void biogpt_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.kv_heads = "", .d_head = ""});
  keys.norm(c, NormKind::layer_norm, "", 1e-5);  // whatever layer_norm_eps says
  c.position = PositionKind::learned;
  c.position_offset = 2;
  keys.activation("hidden_act", c.activation, "gelu");
  bool scaled = c.embedding_scale != 1;
  keys.flag("scale_embedding", scaled, true);
  c.embedding_scale = scaled ? std::sqrt(static_cast<double>(c.dims.d_model)) : 1;
  keys.ends(c, true);
}

WeightNames biogpt_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {"biogpt.", ""};
  names.positions = "embed_positions";
  names.ln1 = "self_attn_layer_norm";
  names.ln2 = "final_layer_norm";
  names.o = "self_attn.out_proj";
  names.up = "fc1";
  names.down = "fc2";
  names.final_norm = "layer_norm";
  names.unembedding = "output_projection";
  return names;
}
}  // namespace

Family biogpt_family();  // declared with all others in family.cpp
Family biogpt_family() {
  return usual_family("biogpt", "BioGptForCausalLM",
                      to_say("learned positions from row 2, embedding times √d_model, GELU"), &biogpt_keys,
                      &biogpt_names);
}

}  // namespace headscope
