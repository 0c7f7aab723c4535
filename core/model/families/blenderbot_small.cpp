// The smallest Blenderbot (Roller et al., Recipes for building an open-domain chatbot, 2020): BART with positions from
// row 0. Its decoder adds them behind the norm of the embeddings, which it does not scale.

#include "core/base/words.h"
#include "core/model/families/bart.h"

namespace headscope {

namespace {
void blenderbot_small_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  bart_like(keys, decoder, encoder);
  keys.only("normalize_embedding", true, "embeddings without a norm are not read in this family");
  decoder.embedding_norm = encoder.embedding_norm = encoder.norm_of_embeddings = true;
  decoder.embedding_scale = 1;
  start_token(keys, decoder, 1);
}
}  // namespace

Family blenderbot_small_family();  // declared with all others in family.cpp
Family blenderbot_small_family() {
  return two_stack_family("blenderbot-small", "BlenderbotSmallForConditionalGeneration",
                          to_say("an encoder-decoder: BART with positions behind the norm of the decoder's embeddings"),
                          &blenderbot_small_keys, &bart_names);
}

}  // namespace headscope
