// PLBART (Ahmad et al., Unified Pre-training for Program Understanding and Generation, 2021): BART of programs, whose
// embeddings are multiplied by √d_model.

#include "core/base/words.h"
#include "core/model/families/bart.h"

namespace headscope {

Family plbart_family();  // declared with all others in family.cpp
Family plbart_family() {
  return two_stack_family(
      "plbart", "PLBartForConditionalGeneration", to_say("an encoder-decoder: BART of programs"),
      [](ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
        bart_with_normed_embeddings(keys, decoder, encoder, NormPlace::after_sum, {.scaled = true});
      },
      &bart_names);
}

}  // namespace headscope
