// mBART (Liu et al., Multilingual Denoising Pre-training for Neural Machine Translation, 2020): BART with norms before
// attention and MLP and behind the last block, for many languages, whose codes stand in the text.

#include "core/base/words.h"
#include "core/model/families/bart.h"

namespace headscope {

namespace {
void mbart_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  bart_like(keys, decoder, encoder, NormPlace::before);
  keys.only("normalize_embedding", true, "embeddings without a norm are not read in this family");
  for (ModelConfig* c : {&decoder, &encoder}) {
    c->position_offset = 2;
    c->embedding_norm = c->norm_of_embeddings = true;
  }
  start_token(keys, decoder, 2);
}
}  // namespace

Family mbart_family();  // declared with all others in family.cpp
Family mbart_family() {
  return two_stack_family("mbart", "MBartForConditionalGeneration",
                          to_say("an encoder-decoder: BART with norms before attention and MLP, in many languages"),
                          &mbart_keys, &bart_names);
}

}  // namespace headscope
