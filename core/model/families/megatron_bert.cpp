// Megatron's BERT (Shoeybi et al., Megatron-LM, 2019): BERT with norms before attention and MLP and behind the last
// block, none of the embeddings.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void megatron_bert_keys(ConfigMap& keys, ModelConfig& c) {
  bert_keys(keys, c);
  c.norm_place = NormPlace::before;
  c.embedding_norm = c.norm_of_embeddings = false;
}

WeightNames megatron_bert_names(const ModelConfig&) {
  WeightNames names = bert_names("bert.");
  names.ln1 = "attention.ln";
  names.ln2 = "ln";
  names.final_norm = "encoder.ln";
  return names;
}
}  // namespace

Family megatron_bert_family();  // declared with all others in family.cpp
Family megatron_bert_family() {
  return usual_family("megatron-bert", "MegatronBertForMaskedLM",
                      to_say("an encoder: BERT with norms before attention and MLP"), &megatron_bert_keys,
                      &megatron_bert_names);
}

}  // namespace headscope
