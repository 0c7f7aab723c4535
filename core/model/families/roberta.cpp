// RoBERTa (Liu et al., RoBERTa: A Robustly Optimized BERT Pretraining Approach, 2019): BERT whose table of positions
// begins behind the row of the padding token, and whose layer before the logits has a name and a GELU of its own.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

void roberta_keys(ConfigMap& keys, ModelConfig& c) {
  if (!keys.reading()) c.context += c.position_offset;
  bert_keys(keys, c);
  int padding = c.position_offset - 1;
  keys.integer("pad_token_id", padding, 0, config_limits::vocab, 1);
  if (!keys.reading()) return;
  c.position_offset = padding + 1;
  if (c.context <= c.position_offset)
    throw keys.json().error("max_position_embeddings", "more than pad_token_id + 1, where positions begin",
                            std::to_string(c.context));
  c.context -= c.position_offset;
  c.head_activation = Activation::gelu;
}

WeightNames roberta_names(const ModelConfig&) {
  WeightNames names = bert_names("roberta.");
  names.head = "lm_head.dense";
  names.head_norm = "lm_head.layer_norm";
  names.unembedding = "lm_head.decoder";
  names.unembedding_bias = "lm_head.bias";
  return names;
}

Family roberta_family();  // declared with all others in family.cpp
Family roberta_family() {
  return usual_family("roberta", "RobertaForMaskedLM", to_say("an encoder: BERT with positions behind the padding's"),
                      &roberta_keys, &roberta_names);
}

}  // namespace headscope
