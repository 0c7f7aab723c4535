// RemBERT (Chung et al., Rethinking Embedding Coupling in Pre-trained Language Models, 2021): BERT whose embeddings are
// narrower than the stream and whose unembedding, which is no embedding again, is wider.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void rembert_keys(ConfigMap& keys, ModelConfig& c) {
  bert_keys(keys, c);
  int in = c.sum_width(), out = c.dims.out_width();
  keys.integer("input_embedding_size", in, 1, config_limits::d_model, 256);
  keys.integer("output_embedding_size", out, 1, config_limits::d_model, 1664);
  if (!keys.reading()) return;
  c.dims.d_embed = c.embedding_width = in;
  c.dims.d_out = out;
  c.tied_embeddings = false;  // whatever the file says: nothing ties them in the library
}

WeightNames rembert_names(const ModelConfig&) {
  WeightNames names = bert_names("rembert.");
  names.embedding_in = "encoder.embedding_hidden_mapping_in";
  names.head = "cls.predictions.dense";
  names.head_norm = "cls.predictions.LayerNorm";
  names.unembedding_bias = "";
  return names;
}
}  // namespace

Family rembert_family();  // declared with all others in family.cpp
Family rembert_family() {
  return usual_family("rembert", "RemBertForMaskedLM",
                      to_say("an encoder: BERT with narrow embeddings and a wide unembedding of its own"),
                      &rembert_keys, &rembert_names);
}

}  // namespace headscope
