// I-BERT (Kim et al., I-BERT: Integer-only BERT Quantization, 2021) as it is before it computes with integers: RoBERTa.
// Files hold rounded copies and ranges beside every matrix, which such a model does not look at.

#include <string>
#include <vector>

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void ibert_keys(ConfigMap& keys, ModelConfig& c) {
  roberta_keys(keys, c);
  keys.only("quant_mode", false, "products of integers are not followed");
}

/// What of a block such a model does not look at.
std::vector<std::string> of_integers() {
  std::vector<std::string> out;
  for (const char* product : {"attention.self.query", "attention.self.key", "attention.self.value",
                              "attention.output.dense", "intermediate.dense", "output.dense"})
    for (const char* part : {".weight_integer", ".bias_integer", ".fc_scaling_factor"})
      out.push_back(std::string(product) + part);
  for (const char* range :
       {"attention.self.query_activation", "attention.self.key_activation", "attention.self.value_activation",
        "attention.self.output_activation", "attention.self.softmax.act", "attention.output.ln_input_act",
        "attention.output.LayerNorm.activation", "attention.output.output_activation", "intermediate.output_activation",
        "output.ln_input_act", "output.LayerNorm.activation", "output.output_activation", "pre_intermediate_act",
        "pre_output_act"})
    for (const char* part : {".x_min", ".x_max", ".act_scaling_factor"}) out.push_back(std::string(range) + part);
  for (const char* norm : {"attention.output.LayerNorm.shift", "output.LayerNorm.shift"}) out.emplace_back(norm);
  return out;
}

WeightNames ibert_names(const ModelConfig& c) {
  WeightNames names = roberta_names(c);
  names.prefixes = {"ibert.", ""};
  names.ignored = of_integers();
  return names;
}
}  // namespace

Family ibert_family();  // declared with all others in family.cpp
Family ibert_family() {
  return usual_family("ibert", "IBertForMaskedLM", to_say("an encoder: RoBERTa, before it computes with integers"),
                      &ibert_keys, &ibert_names);
}

}  // namespace headscope
