// MVP (Tang et al., MVP: Multi-task Supervised Pre-training for Natural Language Generation, 2022): BART, trained on
// many tasks at once. Its prompts, rows of keys and values that every layer may have besides, are not read.

#include "core/base/words.h"
#include "core/model/families/bart.h"

namespace headscope {

namespace {
void mvp_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  bart_with_normed_embeddings(keys, decoder, encoder, NormPlace::after_sum);
  keys.only("use_prompt", false, "keys and values that no token has are not read in this family");
}
}  // namespace

Family mvp_family();  // declared with all others in family.cpp
Family mvp_family() {
  return two_stack_family("mvp", "MvpForConditionalGeneration", to_say("an encoder-decoder: BART"), &mvp_keys,
                          &bart_names);
}

}  // namespace headscope
