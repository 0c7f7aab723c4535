// BigBird-PEGASUS (Zaheer et al., Big Bird: Transformers for Longer Sequences, 2020): PEGASUS with learned positions,
// whose encoder sees, in long sources, a few blocks of others. Up to (5 + 2 · random blocks) · block size tokens every
// token sees all, and such sources are read.

#include "core/base/words.h"
#include "core/model/families/bart.h"
#include "core/model/families/big_bird.h"

namespace headscope {

namespace {
void bigbird_pegasus_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  if (!keys.reading()) encoder.context += encoder.position_tail;
  bart_like(keys, decoder, encoder, NormPlace::before, {.scaled = true, .activation = "gelu_new"});
  bool biased = decoder.bias.q;
  keys.flag("use_bias", biased, false);
  for (ModelConfig* c : {&decoder, &encoder}) c->bias.q = c->bias.k = c->bias.v = c->bias.o = biased;
  keys.only("normalize_embedding", false, "a norm of the embeddings is not read in this family");
  seen_whole(keys, encoder);
  start_token(keys, decoder, 2);
}

WeightNames bigbird_pegasus_names(const ModelConfig& stack) {
  WeightNames names = bart_names(stack);
  names.final_norm = "layernorm_embedding";  // as the files call it
  if (stack.cross()) return names;
  names.probe = "layers.0.self_attn.self.query.weight";
  names.q = "self_attn.self.query", names.k = "self_attn.self.key", names.v = "self_attn.self.value";
  names.o = "self_attn.output";
  return names;
}
}  // namespace

Family bigbird_pegasus_family();  // declared with all others in family.cpp
Family bigbird_pegasus_family() {
  return two_stack_family("bigbird_pegasus", "BigBirdPegasusForConditionalGeneration",
                          to_say("an encoder-decoder: PEGASUS; of sources that are short enough to be seen whole"),
                          &bigbird_pegasus_keys, &bigbird_pegasus_names);
}

}  // namespace headscope
