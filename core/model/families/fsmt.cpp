// FSMT (Ng et al., Facebook FAIR's WMT19 News Translation Task Submission, 2019): BART with Tensor2Tensor's sinusoids
// from behind the padding's row on, no norm of the embeddings, a vocabulary for the source and one for the target, and
// an unembedding of its own without bias.

#include "core/base/words.h"
#include "core/model/families/bart.h"

namespace headscope {

namespace {
void fsmt_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  bart_like(keys, decoder, encoder, NormPlace::after_sum,
            {.scaled = true,
             .decoder_vocab = "tgt_vocab_size",
             .encoder_vocab = "src_vocab_size",
             .activation = "relu",
             .tied = false});
  int padding = decoder.position_offset - 1;
  keys.integer("pad_token_id", padding, 0, config_limits::vocab, 1);
  decoder.bias.unembedding = decoder.shared_embedding = false;
  for (ModelConfig* c : {&decoder, &encoder}) {
    c->sinusoids = c->sinusoids_to_end = true;
    c->position_offset = padding + 1;
  }
  if (keys.reading() && decoder.dims.d_model < 4)
    throw keys.json().error("d_model", "4 or more, of which sinusoids are made", std::to_string(decoder.dims.d_model));
  start_token(keys, decoder, 2);
}

WeightNames fsmt_names(const ModelConfig& stack) {
  WeightNames names = bart_names(stack);
  const std::string side = stack.cross() ? "decoder." : "encoder.";
  names.embeddings = {"model." + side + "embed_tokens", side + "embed_tokens"};
  names.unembedding = "model.decoder.output_projection";
  names.unembedding_too = "decoder.output_projection";
  return names;
}
}  // namespace

Family fsmt_family();  // declared with all others in family.cpp
Family fsmt_family() {
  return two_stack_family("fsmt", "FSMTForConditionalGeneration",
                          to_say("an encoder-decoder: sinusoids, norms of every sum, a vocabulary for each side"),
                          &fsmt_keys, &fsmt_names);
}

}  // namespace headscope
