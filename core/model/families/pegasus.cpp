// PEGASUS (Zhang et al., PEGASUS: Pre-training with Extracted Gap-sentences for Abstractive Summarization, 2020): BART
// with sinusoids for positions, norms before attention and MLP and behind the last block, none of the embeddings.

#include "core/base/words.h"
#include "core/model/families/bart.h"

namespace headscope {

namespace {
void pegasus_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  bart_like(keys, decoder, encoder, NormPlace::before);
  keys.only("normalize_embedding", false, "a norm of the embeddings is not read in this family");
  keys.only("static_position_embeddings", true, "learned positions are not read in this family");
  decoder.sinusoids = encoder.sinusoids = true;
  start_token(keys, decoder, 0);
}
}  // namespace

Family pegasus_family();  // declared with all others in family.cpp
Family pegasus_family() {
  return two_stack_family("pegasus", "PegasusForConditionalGeneration",
                          to_say("an encoder-decoder: sinusoids, norms before attention and MLP"), &pegasus_keys,
                          &bart_names);
}

}  // namespace headscope
