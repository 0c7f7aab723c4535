// T5Gemma (Zhang et al., Encoder-Decoder Gemma: Improving the Quality-Efficiency Trade-Off via Adaptation, 2025): Gemma
// 2 twice, as an encoder that sees both ways and as a decoder that attends to it between its attention and its MLP,
// with norms before and behind that, too.

#include <string>

#include "core/base/words.h"
#include "core/model/families/gemma.h"
#include "core/model/families/two_stacks.h"

namespace headscope {

namespace {
void t5gemma_stack(ConfigMap& keys, ModelConfig& c, const std::string& side) {
  if (!keys.reading()) {
    ConfigWriter nested;
    ConfigMap own(nested);
    gemma2_like(own, c);
    return keys.put(side, nested);
  }
  const auto nested = keys.json().object(side);
  if (!nested) throw keys.json().error(side, "the configuration of the " + side, "nothing");
  ConfigMap own(*nested);
  gemma2_like(own, c);
}

void t5gemma_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  t5gemma_stack(keys, decoder, "decoder");
  // Of the encoder so many tokens on either side, beside the token itself.
  const auto widen = [&](int by) {
    for (int& window : encoder.windows)
      if (window > 0) window += by;
  };
  if (!keys.reading()) widen(-1);
  t5gemma_stack(keys, encoder, "encoder");
  keys.flag("tie_word_embeddings", decoder.tied_embeddings, true);
  if (!keys.reading()) return;
  if (encoder.dims.d_model != decoder.dims.d_model)
    throw keys.json().error("encoder", "hidden_size " + std::to_string(decoder.dims.d_model) + ", the decoder's",
                            std::to_string(encoder.dims.d_model),
                            "an encoder and a decoder of unequal width are not read");
  encoder.logit_cap = 0;
  widen(1);
  decoder.shared_embedding = false;
  decoder.decoder_start = decoder.bos.value_or(2);
}

WeightNames t5gemma_names(const ModelConfig& stack) {
  const std::string side = stack.cross() ? "decoder." : "encoder.";
  WeightNames names = gemma2_names(stack);
  names.prefixes = {"model." + side, side};
  names.embeddings = {"model." + side + "embed_tokens", side + "embed_tokens"};
  names.ln1 = "pre_self_attn_layernorm";
  names.ln1_post = "post_self_attn_layernorm";
  names.cross_ln = "pre_cross_attn_layernorm";
  names.cross_ln_post = "post_cross_attn_layernorm";
  names.cross_q = "cross_attn.q_proj";
  names.cross_k = "cross_attn.k_proj";
  names.cross_v = "cross_attn.v_proj";
  names.cross_o = "cross_attn.o_proj";
  names.unembedding = "lm_head.out_proj";
  return names;
}
}  // namespace

Family t5gemma_family();  // declared with all others in family.cpp
Family t5gemma_family() {
  return two_stack_family("t5gemma", "T5GemmaForConditionalGeneration",
                          to_say("an encoder-decoder: Gemma 2 twice, with norms before and behind each part"),
                          &t5gemma_keys, &t5gemma_names);
}

}  // namespace headscope
