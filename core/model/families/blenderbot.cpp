// Blenderbot (Roller et al., Recipes for building an open-domain chatbot, 2020): BART with positions from row 0, norms
// before attention and MLP and behind the last block, none of the embeddings.

#include "core/base/words.h"
#include "core/model/families/bart.h"

namespace headscope {

namespace {
void blenderbot_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  bart_like(keys, decoder, encoder, NormPlace::before);
  keys.only("normalize_embedding", false, "a norm of the embeddings is not read in this family");
  start_token(keys, decoder, 1);
}
}  // namespace

Family blenderbot_family();  // declared with all others in family.cpp
Family blenderbot_family() {
  return two_stack_family("blenderbot", "BlenderbotForConditionalGeneration",
                          to_say("an encoder-decoder: learned positions, norms before attention and MLP"),
                          &blenderbot_keys, &bart_names);
}

}  // namespace headscope
