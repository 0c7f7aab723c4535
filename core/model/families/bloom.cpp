// BLOOM (BigScience Workshop, BLOOM: A 176B-Parameter Open-Access Multilingual Language Model, 2022): ALiBi, a
// LayerNorm behind the embedding, queries, keys and values stored head by head.

#include "core/attention/positions/alibi.h"
#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void bloom_keys(ConfigMap& keys, ModelConfig& c) {
  const bool other = keys.reading() && keys.json().has("n_embed");
  keys.extents(c, {.layers = "n_layer",
                   .heads = "n_head",
                   .kv_heads = "",
                   .width = other ? "n_embed" : "hidden_size",
                   .d_head = "",
                   .mlp = "",
                   .context = "",
                   .mlp_factor = 4});
  // ALiBi knows no longest text; seq_length is how long those of training were.
  keys.integer("seq_length", c.context, 1, config_limits::context, 2048);
  keys.norm(c, NormKind::layer_norm, "layer_norm_epsilon", 1e-5);
  c.embedding_norm = true;
  c.position = PositionKind::alibi;
  c.alibi_slopes = alibi_slopes(c.dims.heads);
  c.activation = Activation::gelu_tanh;
  keys.only("apply_residual_connection_post_layernorm", false, "a stream that goes on behind the norm is not read");
  keys.ends(c, true);
}

WeightNames bloom_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {"transformer.", ""};
  names.embedding = "word_embeddings";
  names.embedding_norm = "word_embeddings_layernorm";
  names.block = "h.";
  names.qkv = "self_attention.query_key_value";
  names.fused = FusedQkv::by_group;
  names.o = "self_attention.dense";
  names.up = "mlp.dense_h_to_4h";
  names.down = "mlp.dense_4h_to_h";
  names.final_norm = "ln_f";
  return names;
}
}  // namespace

Family bloom_family();  // declared with all others in family.cpp
Family bloom_family() {
  return usual_family("bloom", "BloomForCausalLM", to_say("ALiBi, a norm behind the embedding"), &bloom_keys,
                      &bloom_names);
}

}  // namespace headscope
