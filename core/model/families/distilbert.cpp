// DistilBERT (Sanh et al., DistilBERT, a distilled version of BERT, 2019): BERT without segments, half as deep.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void distilbert_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(
      c, {.layers = "n_layers", .heads = "n_heads", .kv_heads = "", .width = "dim", .d_head = "", .mlp = "hidden_dim"});
  keys.norm(c, NormKind::layer_norm, "", 1e-12);
  bert_like(keys, c, "activation");
  keys.ends(c, true);
}

WeightNames distilbert_names(const ModelConfig&) {
  WeightNames names = bert_names("distilbert.");
  names.block = "transformer.layer.";
  names.q = "attention.q_lin";
  names.k = "attention.k_lin";
  names.v = "attention.v_lin";
  names.o = "attention.out_lin";
  names.ln1 = "sa_layer_norm";
  names.up = "ffn.lin1";
  names.down = "ffn.lin2";
  names.ln2 = "output_layer_norm";
  names.head = "vocab_transform";
  names.head_norm = "vocab_layer_norm";
  names.unembedding = "vocab_projector";
  names.unembedding_bias = "";
  return names;
}
}  // namespace

Family distilbert_family();  // declared with all others in family.cpp
Family distilbert_family() {
  return usual_family("distilbert", "DistilBertForMaskedLM", to_say("an encoder: BERT without segments"),
                      &distilbert_keys, &distilbert_names);
}

}  // namespace headscope
