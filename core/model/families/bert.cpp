// BERT (Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding, 2019): every
// token sees every other; learned positions and segments; a norm of the sum of all embeddings and of every sum of the
// stream; a layer of its own before the logits.

#include "core/model/families/bert.h"

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

void bert_like(ConfigMap& keys, ModelConfig& c, const std::string& activation_key, const std::string& activation) {
  keys.activation(activation_key, c.activation, activation);
  if (!keys.reading()) return;
  c.causal = false;
  c.norm_place = NormPlace::after_sum;
  c.position = PositionKind::learned;
  c.embedding_norm = c.norm_of_embeddings = true;
  c.head_layer = true;
  c.head_activation = c.activation;
  c.bias.unembedding = true;
  keys.predicts(c);
}

void bert_keys(ConfigMap& keys, ModelConfig& c, const std::string& activation) {
  keys.extents(c, {.kv_heads = "", .d_head = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-12);
  bert_like(keys, c, "hidden_act", activation);
  keys.integer("type_vocab_size", c.segments, 1, 1 << 16, 2);
  keys.only("is_decoder", false, "a BERT that writes is not read");
  keys.only("add_cross_attention", false, "attention to a second text is not read in this family");
  if (keys.reading() && keys.json().text("position_embedding_type", "absolute") != "absolute")
    throw keys.json().error("position_embedding_type", "\"absolute\"",
                            "\"" + keys.json().text("position_embedding_type") + "\"",
                            "positions relative to the key are not read in this family");
  keys.ends(c, true);
}

WeightNames bert_names(const std::string& model) {
  WeightNames names;
  names.prefixes = {model, ""};
  names.embedding = "embeddings.word_embeddings";
  names.positions = "embeddings.position_embeddings";
  names.segments = "embeddings.token_type_embeddings";
  names.embedding_norm = "embeddings.LayerNorm";
  names.block = "encoder.layer.";
  names.q = "attention.self.query";
  names.k = "attention.self.key";
  names.v = "attention.self.value";
  names.o = "attention.output.dense";
  names.ln1 = "attention.output.LayerNorm";
  names.up = "intermediate.dense";
  names.down = "output.dense";
  names.ln2 = "output.LayerNorm";
  names.head = "cls.predictions.transform.dense";
  names.head_norm = "cls.predictions.transform.LayerNorm";
  names.unembedding = "cls.predictions.decoder";
  names.unembedding_bias = "cls.predictions.bias";
  return names;
}

Family bert_family();  // declared with all others in family.cpp
Family bert_family() {
  return usual_family(
      "bert", "BertForMaskedLM", to_say("an encoder: learned positions and segments, norms of every sum"),
      [](ConfigMap& keys, ModelConfig& c) { bert_keys(keys, c); },
      [](const ModelConfig&) { return bert_names("bert."); });
}

}  // namespace headscope
