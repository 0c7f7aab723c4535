// XLM-RoBERTa XL and XXL (Goyal et al., Larger-Scale Transformers for Multilingual Masked Language Modeling, 2021):
// norms before attention and MLP and behind the last block, none of the embeddings.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void xl_keys(ConfigMap& keys, ModelConfig& c) {
  roberta_keys(keys, c);
  c.norm_place = NormPlace::before;
  c.embedding_norm = c.norm_of_embeddings = false;
}

WeightNames xl_names(const ModelConfig& c) {
  WeightNames names = roberta_names(c);
  names.ln1 = "attention.self_attn_layer_norm";
  names.ln2 = "LayerNorm";
  names.final_norm = "encoder.LayerNorm";
  return names;
}
}  // namespace

Family xlm_roberta_xl_family();  // declared with all others in family.cpp
Family xlm_roberta_xl_family() {
  return usual_family("xlm-roberta-xl", "XLMRobertaXLForMaskedLM",
                      to_say("an encoder: XLM-RoBERTa with norms before attention and MLP, none of the embeddings"),
                      &xl_keys, &xl_names);
}

}  // namespace headscope
