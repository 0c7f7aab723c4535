// Marian (Junczys-Dowmunt et al., Marian: Fast Neural Machine Translation in C++, 2018; OPUS-MT, Tiedemann & Thottingal
// 2020): BART with sinusoids for positions and no norm of the embeddings; source and target may have vocabularies of
// their own.

#include "core/base/words.h"
#include "core/model/families/bart.h"

namespace headscope {

namespace {
void marian_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  bart_like(keys, decoder, encoder);
  keys.only("normalize_embedding", false, "a norm of the embeddings is not read in this family");
  keys.only("static_position_embeddings", true, "learned positions are not read in this family");
  decoder.sinusoids = encoder.sinusoids = true;
  bool one = decoder.shared_embedding;
  keys.flag("share_encoder_decoder_embeddings", one, true);
  // The file's vocab_size is the source's.
  keys.integer("decoder_vocab_size", decoder.dims.vocab, 1, config_limits::vocab, encoder.dims.vocab);
  if (keys.reading() && one && decoder.dims.vocab != encoder.dims.vocab)
    throw keys.json().error("decoder_vocab_size", "vocab_size, since both sides share one table",
                            std::to_string(decoder.dims.vocab));
  decoder.shared_embedding = one;
  if (!keys.reading()) keys.integer("vocab_size", encoder.dims.vocab, 1, config_limits::vocab);
  start_token(keys, decoder, decoder.dims.vocab - 1);
}
}  // namespace

Family marian_family();  // declared with all others in family.cpp
Family marian_family() {
  return two_stack_family("marian", "MarianMTModel", to_say("an encoder-decoder: sinusoids, norms of every sum"),
                          &marian_keys, &bart_names);
}

}  // namespace headscope
