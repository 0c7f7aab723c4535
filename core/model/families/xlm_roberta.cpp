// XLM-RoBERTa (Conneau et al., Unsupervised Cross-lingual Representation Learning at Scale, 2020): RoBERTa for a
// hundred languages.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

Family xlm_roberta_family();  // declared with all others in family.cpp
Family xlm_roberta_family() {
  return usual_family("xlm-roberta", "XLMRobertaForMaskedLM", to_say("an encoder: RoBERTa for many languages"),
                      &roberta_keys, &roberta_names);
}

}  // namespace headscope
