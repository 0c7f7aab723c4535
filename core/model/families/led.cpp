// LED (Beltagy et al., Longformer: The Long-Document Transformer, 2020): BART for long sources, of which every token
// sees a window on either side. Tasks let some tokens see all, by matrices of their own; it is read without, as the
// library does where nobody names such tokens.

#include <string>

#include "core/base/words.h"
#include "core/model/families/bart.h"
#include "core/model/families/longformer.h"

namespace headscope {

namespace {
void led_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  bart_like(
      keys, decoder, encoder, NormPlace::after_sum,
      {.decoder_context = "max_decoder_position_embeddings", .encoder_context = "max_encoder_position_embeddings"});
  for (ModelConfig* c : {&decoder, &encoder}) c->embedding_norm = c->norm_of_embeddings = true;
  windows_on_either_side(keys, encoder);
  start_token(keys, decoder, 2);
}

WeightNames led_names(const ModelConfig& stack) {
  WeightNames names = bart_names(stack);
  const std::string side = stack.cross() ? "decoder." : "encoder.";
  names.prefixes = {"led." + side, side};
  names.embeddings = {"led.shared", "shared", "led." + side + "embed_tokens", side + "embed_tokens"};
  if (stack.cross()) return names;
  const std::string own = "self_attn.longformer_self_attn.";
  names.probe = "layers.0." + own + "query.weight";
  names.q = own + "query", names.k = own + "key", names.v = own + "value";
  names.o = "self_attn.output";
  for (const char* of : {"query_global", "key_global", "value_global"})
    for (const char* part : {".weight", ".bias"}) names.ignored.push_back(own + of + part);
  return names;
}
}  // namespace

Family led_family();  // declared with all others in family.cpp
Family led_family() {
  return two_stack_family("led", "LEDForConditionalGeneration",
                          to_say("an encoder-decoder: BART whose source is read through windows"), &led_keys,
                          &led_names);
}

}  // namespace headscope
