// RoBERTa with the norms before attention and MLP (Ott et al., fairseq, 2019: "pre-norm"), and one behind the last
// block.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void prelayernorm_keys(ConfigMap& keys, ModelConfig& c) {
  roberta_keys(keys, c);
  c.norm_place = NormPlace::before;
}

WeightNames prelayernorm_names(const ModelConfig& c) {
  WeightNames names = roberta_names(c);
  names.prefixes = {"roberta_prelayernorm.", ""};
  names.ln1 = "attention.LayerNorm";
  names.ln2 = "intermediate.LayerNorm";
  names.final_norm = "LayerNorm";
  return names;
}
}  // namespace

Family roberta_prelayernorm_family();  // declared with all others in family.cpp
Family roberta_prelayernorm_family() {
  return usual_family("roberta-prelayernorm", "RobertaPreLayerNormForMaskedLM",
                      to_say("an encoder: RoBERTa with norms before attention and MLP"), &prelayernorm_keys,
                      &prelayernorm_names);
}

}  // namespace headscope
