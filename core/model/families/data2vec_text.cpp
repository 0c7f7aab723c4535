// data2vec for text (Baevski et al., data2vec: A General Framework for Self-supervised Learning in Speech, Vision and
// Language, 2022): RoBERTa that learnt to foretell what its own average says inside.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
WeightNames data2vec_names(const ModelConfig& c) {
  WeightNames names = roberta_names(c);
  names.prefixes = {"data2vec_text.", ""};
  return names;
}
}  // namespace

Family data2vec_text_family();  // declared with all others in family.cpp
Family data2vec_text_family() {
  return usual_family("data2vec-text", "Data2VecTextForMaskedLM",
                      to_say("an encoder: RoBERTa that learnt from its own streams"), &roberta_keys, &data2vec_names);
}

}  // namespace headscope
