// ELECTRA (Clark et al., ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators, 2020): BERT
// whose embeddings have a width of their own. The generator says masked tokens; files of the discriminator, which tells
// of each token whether it was put in the place of another, have no logits over tokens and are read without them.

#include <algorithm>

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void electra_keys(ConfigMap& keys, ModelConfig& c) {
  bert_keys(keys, c);
  int width = c.sum_width();
  keys.integer("embedding_size", width, 1, config_limits::d_model, 128);
  if (!keys.reading()) return;
  c.head_activation = Activation::gelu;
  if (width != c.dims.d_model) c.dims.d_embed = c.embedding_width = width;
  const auto classes = keys.json().texts("architectures");
  if (classes && std::ranges::find(*classes, "ElectraForPreTraining") != classes->end()) c.predicts = false;
}

WeightNames electra_names(const ModelConfig&) {
  WeightNames names = bert_names("electra.");
  names.embedding_in = "embeddings_project";
  names.head = "generator_predictions.dense";
  names.head_norm = "generator_predictions.LayerNorm";
  names.unembedding = "generator_lm_head";
  names.unembedding_bias = "";
  return names;
}
}  // namespace

Family electra_family();  // declared with all others in family.cpp
Family electra_family() {
  return usual_family(
      "electra", "ElectraForMaskedLM",
      to_say("an encoder: BERT with embeddings of another width; the discriminator without its answers"), &electra_keys,
      &electra_names);
}

}  // namespace headscope
