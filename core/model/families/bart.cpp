// BART (Lewis et al., BART: Denoising Sequence-to-Sequence Pre-training, 2020): Vaswani et al.'s encoder and decoder
// with a norm of every sum of the stream and of the embeddings, learned positions from row 2, GELU, and biases
// everywhere, of the logits too.

#include "core/model/families/bart.h"

#include <cmath>

#include "core/base/words.h"

namespace headscope {

namespace {
void bart_stack_keys(ConfigMap& keys, ModelConfig& c, const std::string& side, NormPlace place,
                     const BartHabits& habits) {
  const bool decodes = side == "decoder_";
  keys.extents(c, {.layers = side + "layers",
                   .heads = side + "attention_heads",
                   .kv_heads = "",
                   .width = "d_model",
                   .d_head = "",
                   .mlp = side + "ffn_dim",
                   .context = decodes ? habits.decoder_context : habits.encoder_context,
                   .vocab = decodes ? habits.decoder_vocab : habits.encoder_vocab});
  keys.norm(c, NormKind::layer_norm, "", 1e-5);
  c.norm_place = place;
  c.position = PositionKind::learned;
  keys.activation("activation_function", c.activation, habits.activation);
  bool scaled = c.embedding_scale != 1;
  keys.flag("scale_embedding", scaled, habits.scaled);
  if (keys.reading() && scaled) c.embedding_scale = std::sqrt(static_cast<double>(c.dims.d_model));
}
}  // namespace

void bart_like(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder, NormPlace place, const BartHabits& habits) {
  bart_stack_keys(keys, decoder, "decoder_", place, habits);
  bart_stack_keys(keys, encoder, "encoder_", place, habits);
  decoder.bias.unembedding = true;
  const bool before = place == NormPlace::before;
  keys.only("normalize_before", before,
            before ? "norms behind every sum (BART) are not read in this family"
                   : "norms before attention and MLP (mBART) are not read in this family");
  keys.only("add_final_layer_norm", before,
            before ? "blocks without a norm behind the last are not read in this family"
                   : "a norm behind the last block is not read in this family");
  keys.ends(decoder, habits.tied);
  encoder.bos = decoder.bos, encoder.eos = decoder.eos;
}

WeightNames bart_names(const ModelConfig& stack) {
  const std::string side = stack.cross() ? "decoder." : "encoder.";
  WeightNames names;
  names.prefixes = {"model." + side, side};
  names.probe = "layers.0.self_attn.q_proj.weight";
  names.embeddings = {"model.shared", "shared", "model." + side + "embed_tokens", side + "embed_tokens"};
  names.positions = "embed_positions";
  names.embedding_norm = "layernorm_embedding";
  names.ln1 = "self_attn_layer_norm";
  names.ln2 = "final_layer_norm";
  names.o = "self_attn.out_proj";
  names.cross_ln = "encoder_attn_layer_norm";
  names.cross_q = "encoder_attn.q_proj";
  names.cross_k = "encoder_attn.k_proj";
  names.cross_v = "encoder_attn.v_proj";
  names.cross_o = "encoder_attn.out_proj";
  names.final_norm = "layer_norm";  // of those with norms before
  names.up = "fc1";
  names.down = "fc2";
  names.unembedding_bias = "final_logits_bias";
  names.bias_is_buffer = true;
  return names;
}

void bart_with_normed_embeddings(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder, NormPlace place,
                                 const BartHabits& habits) {
  bart_like(keys, decoder, encoder, place, habits);
  keys.only("normalize_embedding", true, "embeddings without a norm are not read in this family");
  for (ModelConfig* c : {&decoder, &encoder}) {
    c->position_offset = 2;
    c->embedding_norm = c->norm_of_embeddings = true;
  }
  start_token(keys, decoder, 2);
}

namespace {
void bart_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  bart_with_normed_embeddings(keys, decoder, encoder, NormPlace::after_sum);
}
}  // namespace

Family bart_family();  // declared with all others in family.cpp
Family bart_family() {
  return two_stack_family("bart", "BartForConditionalGeneration",
                          to_say("an encoder-decoder: learned positions from row 2, norms of every sum"), &bart_keys,
                          &bart_names);
}

}  // namespace headscope
