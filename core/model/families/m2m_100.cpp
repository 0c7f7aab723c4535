// M2M-100 (Fan et al., Beyond English-Centric Multilingual Machine Translation, 2020) and NLLB-200's dense models (NLLB
// team, No Language Left Behind, 2022): BART with Tensor2Tensor's sinusoids from behind the padding's row on, norms
// before attention and MLP and behind the last block, and no bias of the logits. Codes of languages stand in the text.

#include "core/base/words.h"
#include "core/model/families/bart.h"

namespace headscope {

namespace {
void m2m_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  bart_like(keys, decoder, encoder, NormPlace::before);
  int padding = decoder.position_offset - 1;
  keys.integer("pad_token_id", padding, 0, config_limits::vocab, 1);
  decoder.bias.unembedding = false;
  for (ModelConfig* c : {&decoder, &encoder}) {
    c->sinusoids = c->sinusoids_to_end = true;
    c->position_offset = padding + 1;
  }
  if (keys.reading() && decoder.dims.d_model < 4)
    throw keys.json().error("d_model", "4 or more, of which sinusoids are made", std::to_string(decoder.dims.d_model));
  start_token(keys, decoder, 2);
}
}  // namespace

Family m2m_100_family();  // declared with all others in family.cpp
Family m2m_100_family() {
  return two_stack_family("m2m_100", "M2M100ForConditionalGeneration",
                          to_say("an encoder-decoder: sinusoids, norms before attention and MLP, in many languages"),
                          &m2m_keys, &bart_names);
}

}  // namespace headscope
