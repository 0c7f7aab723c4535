// LUKE and mLUKE (Yamada et al., LUKE: Deep Contextualized Entity Representations with Entity-aware Self-attention,
// 2020): RoBERTa that reads entities beside words, with queries of their own. Of words alone these are not used.

#include <string>

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
WeightNames luke_names(const ModelConfig& c) {
  WeightNames names = roberta_names(c);
  names.prefixes = {"luke.", ""};
  for (const char* of : {"w2e", "e2w", "e2e"})
    for (const char* part : {"_query.weight", "_query.bias"})
      names.ignored.push_back(std::string("attention.self.") + of + part);
  return names;
}
}  // namespace

Family luke_family();  // declared with all others in family.cpp
Family luke_family() {
  return usual_family("luke", "LukeForMaskedLM", to_say("an encoder: RoBERTa, of words without entities"),
                      &roberta_keys, &luke_names);
}

}  // namespace headscope
