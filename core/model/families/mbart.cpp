// mBART (Liu et al., Multilingual Denoising Pre-training for Neural Machine Translation, 2020): BART with norms before
// attention and MLP and behind the last block, for many languages, whose codes stand in the text.

#include "core/base/words.h"
#include "core/model/families/bart.h"

namespace headscope {

namespace {
void mbart_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  bart_with_normed_embeddings(keys, decoder, encoder, NormPlace::before);
}
}  // namespace

Family mbart_family();  // declared with all others in family.cpp
Family mbart_family() {
  return two_stack_family("mbart", "MBartForConditionalGeneration",
                          to_say("an encoder-decoder: BART with norms before attention and MLP, in many languages"),
                          &mbart_keys, &bart_names);
}

}  // namespace headscope
