// CamemBERT (Martin et al., CamemBERT: a Tasty French Language Model, 2020): RoBERTa for French.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

Family camembert_family();  // declared with all others in family.cpp
Family camembert_family() {
  return usual_family("camembert", "CamembertForMaskedLM", to_say("an encoder: RoBERTa for French"), &roberta_keys,
                      &roberta_names);
}

}  // namespace headscope
