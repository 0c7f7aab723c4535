// CTRL (Keskar et al., CTRL: A Conditional Transformer Language Model for Controllable Generation, 2019): sinusoids,
// embeddings multiplied by √d_model, ReLU.

#include <cmath>

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void ctrl_keys(ConfigMap& keys, ModelConfig& c) {
  ConfigMap::Extents extents = gpt2_extents();
  extents.mlp = "dff";
  extents.mlp_factor = 0;
  keys.extents(c, extents);
  keys.norm(c, NormKind::layer_norm, "layer_norm_epsilon", 1e-6);
  if (keys.reading() && c.norm_epsilon != 1e-6)
    throw keys.json().error("layer_norm_epsilon", "1e-6, which its blocks have whatever it says", "another number");
  c.position = PositionKind::learned;
  c.sinusoids = true;
  c.activation = Activation::relu;
  c.embedding_scale = std::sqrt(static_cast<double>(c.dims.d_model));
  c.bias.unembedding = true;
  keys.ends(c, true);
}

WeightNames ctrl_names(const ModelConfig&) {
  WeightNames names = gpt2_names();
  names.embedding = "w";
  names.positions = "pos_encoding";
  names.ln1 = "layernorm1";
  names.ln2 = "layernorm2";
  names.q = "multi_head_attention.Wq";
  names.k = "multi_head_attention.Wk";
  names.v = "multi_head_attention.Wv";
  names.o = "multi_head_attention.dense";
  names.up = "ffn.0";
  names.down = "ffn.2";
  names.final_norm = "layernorm";
  return names;
}
}  // namespace

Family ctrl_family();  // declared with all others in family.cpp
Family ctrl_family() {
  return usual_family("ctrl", "CTRLLMHeadModel", to_say("sinusoids, embedding times √d_model, ReLU"), &ctrl_keys,
                      &ctrl_names);
}

}  // namespace headscope
