// T5 (Raffel et al., Exploring the Limits of Transfer Learning, 2020): an encoder and a decoder without biases, RMSNorm
// before each part, unscaled scores, and for positions a learned number per bucket of distances, the same in all layers
// of a stack. Version 1.1 has a gated MLP (Shazeer 2020) and an unembedding of its own; where it is the embedding again
// the stream is divided by √d_model before it.

#include "core/model/families/t5.h"

#include <cmath>

#include "core/base/words.h"

namespace headscope {

namespace {
/// "relu", "gated-gelu": whether the MLP has a gate, and its activation function.
void feed_forward(ConfigMap& keys, ModelConfig& c, const char* habit) {
  const std::string gated = "gated-", tanh = "gated-gelu";
  std::string words = c.gated_mlp ? c.activation == Activation::gelu_tanh ? tanh : gated + activation_name(c.activation)
                                  : activation_name(c.activation);
  keys.text("feed_forward_proj", words, habit);
  if (!keys.reading()) return;
  c.gated_mlp = words.starts_with(gated);
  const std::string name = c.gated_mlp ? words.substr(gated.size()) : words;
  c.activation = keys.json().choice<Activation>(
      "feed_forward_proj", name,
      {{"relu", Activation::relu},
       {"gelu", c.gated_mlp ? Activation::gelu_tanh : Activation::gelu},  // as its makers meant "gated-gelu"
       {"gelu_new", Activation::gelu_tanh},
       {"silu", Activation::silu}});
}

void stack_keys(ConfigMap& keys, ModelConfig& c, const char* mlp) {
  t5_stack(keys, c);
  feed_forward(keys, c, mlp);
}
}  // namespace

void t5_stack(ConfigMap& keys, ModelConfig& c) {
  ConfigMap::Extents names{.layers = "num_layers",
                           .heads = "num_heads",
                           .kv_heads = "",
                           .width = "d_model",
                           .d_head = "d_kv",
                           .mlp = "d_ff",
                           .context = ""};
  keys.extents(c, names);
  keys.integer("n_positions", c.context, 1, config_limits::context, 512);  // of training: distances know no end
  keys.norm(c, NormKind::rms_norm, "layer_norm_epsilon", 1e-6);
  c.position = PositionKind::buckets;
  keys.integer("relative_attention_num_buckets", c.position_buckets, 4, 1 << 16, 32);
  keys.integer("relative_attention_max_distance", c.position_distance, c.position_buckets / 2 + 1,
               config_limits::context, 128);
  c.bias = BiasSet::none();
  c.score_scale = 1;
  keys.token("eos_token_id", c.eos, c.dims.vocab);
}

void t5_like(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder, const char* mlp, bool tied) {
  stack_keys(keys, decoder, mlp);
  stack_keys(keys, encoder, mlp);  // num_layers is the encoder's
  keys.integer("num_decoder_layers", decoder.dims.layers, 1, config_limits::layers, encoder.dims.layers);
  keys.flag("tie_word_embeddings", decoder.tied_embeddings, tied);
  bool scaled = decoder.logit_scale != 1;
  keys.flag("scale_decoder_outputs", scaled, tied && decoder.tied_embeddings);
  if (keys.reading()) {
    // Newer files call every unembedding tied; then this tells.
    decoder.tied_embeddings = decoder.tied_embeddings && scaled;
    if (scaled) decoder.logit_scale = 1 / std::sqrt(static_cast<double>(decoder.dims.d_model));
  }
  start_token(keys, decoder, 0);
}

WeightNames t5_names(const ModelConfig& stack) {
  const bool decoder = stack.cross();
  const std::string mlp = decoder ? "layer.2." : "layer.1.";
  WeightNames names;
  names.prefixes = {decoder ? "decoder." : "encoder."};
  names.embeddings = {"shared", names.prefixes[0] + "embed_tokens"};
  names.block = "block.";
  names.ln1 = "layer.0.layer_norm";
  names.q = "layer.0.SelfAttention.q";
  names.k = "layer.0.SelfAttention.k";
  names.v = "layer.0.SelfAttention.v";
  names.o = "layer.0.SelfAttention.o";
  names.buckets = "block.0.layer.0.SelfAttention.relative_attention_bias";
  names.cross_ln = "layer.1.layer_norm";
  names.cross_q = "layer.1.EncDecAttention.q";
  names.cross_k = "layer.1.EncDecAttention.k";
  names.cross_v = "layer.1.EncDecAttention.v";
  names.cross_o = "layer.1.EncDecAttention.o";
  names.ln2 = mlp + "layer_norm";
  names.gate = mlp + "DenseReluDense.wi_0";
  names.up = mlp + (stack.gated_mlp ? "DenseReluDense.wi_1" : "DenseReluDense.wi");
  names.down = mlp + "DenseReluDense.wo";
  names.final_norm = "final_layer_norm";
  names.unembedding_too = "shared";
  names.ignored = {"layer.1.EncDecAttention.relative_attention_bias.weight"};  // in early files, of no use
  return names;
}

namespace {
void t5_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  t5_like(keys, decoder, encoder, "relu", true);
}
}  // namespace

Family t5_family();  // declared with all others in family.cpp
Family t5_family() {
  return two_stack_family("t5", "T5ForConditionalGeneration",
                          to_say("an encoder-decoder: positions by buckets of distances, RMSNorm, no biases"), &t5_keys,
                          &t5_names);
}

}  // namespace headscope
