// ALBERT (Lan et al., ALBERT: A Lite BERT for Self-supervised Learning of Language Representations, 2020): BERT whose
// layers share their weights, all or in groups, and whose embeddings, their sum and its norm are narrower than the
// stream.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void albert_keys(ConfigMap& keys, ModelConfig& c) {
  bert_keys(keys, c, "gelu_new");
  keys.integer("embedding_size", c.embedding_width, 1, config_limits::d_model, 128);
  if (keys.reading()) c.dims.d_embed = c.embedding_width;
  keys.integer("num_hidden_groups", c.layer_groups, 1, c.dims.layers, 1);
  int inner = 1;
  keys.integer("inner_group_num", inner, 1, config_limits::layers, 1);
  if (inner != 1)
    throw keys.json().error("inner_group_num", "1", std::to_string(inner),
                            "several blocks in one layer are not read in this family");
}

WeightNames albert_names(const ModelConfig&) {
  WeightNames names = bert_names("albert.");
  names.embedding_in = "encoder.embedding_hidden_mapping_in";
  names.block = "encoder.albert_layer_groups.";
  names.in_block = "albert_layers.0.";
  names.q = "attention.query";
  names.k = "attention.key";
  names.v = "attention.value";
  names.o = "attention.dense";
  names.ln1 = "attention.LayerNorm";
  names.up = "ffn";
  names.down = "ffn_output";
  names.ln2 = "full_layer_layer_norm";
  names.head = "predictions.dense";
  names.head_norm = "predictions.LayerNorm";
  names.unembedding = "predictions.decoder";
  names.unembedding_bias = "predictions.bias";
  return names;
}
}  // namespace

Family albert_family();  // declared with all others in family.cpp
Family albert_family() {
  return usual_family("albert", "AlbertForMaskedLM",
                      to_say("an encoder: BERT whose layers share their weights, with narrow embeddings"), &albert_keys,
                      &albert_names);
}

}  // namespace headscope
