// DeBERTa-v2 and DeBERTaV3 (He et al., DeBERTaV3: Improving DeBERTa using ELECTRA-Style Pre-Training with
// Gradient-Disentangled Embedding Sharing, 2023): DeBERTa whose far distances share vectors, and whose distances, as a
// rule, go through the matrices of contents.

#include "core/base/words.h"
#include "core/model/families/deberta.h"

namespace headscope {

Family deberta_v2_family();  // declared with all others in family.cpp
Family deberta_v2_family() {
  return usual_family(
      "deberta-v2", "DebertaV2ForMaskedLM", to_say("as deberta, far distances in buckets (DeBERTa-v2 and v3)"),
      [](ConfigMap& keys, ModelConfig& c) { deberta_keys(keys, c, true); },
      [](const ModelConfig&) {
        WeightNames names = deberta_names();
        names.q = "attention.self.query_proj";
        names.k = "attention.self.key_proj";
        names.v = "attention.self.value_proj";
        names.distance_k = "attention.self.pos_key_proj";
        names.distance_q = "attention.self.pos_query_proj";
        return names;
      });
}

}  // namespace headscope
