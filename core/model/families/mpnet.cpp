// MPNet (Song et al., MPNet: Masked and Permuted Pre-training for Language Understanding, 2020): BERT without segments,
// whose positions are learned, from row 2, and besides a bias for each bucket of distances, T5's, the same in all
// layers.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
constexpr int before_first = 2;  // rows of the table: the padding's and one before it

void mpnet_keys(ConfigMap& keys, ModelConfig& c) {
  if (!keys.reading()) c.context += before_first;
  keys.extents(c, {.kv_heads = "", .d_head = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-12);
  bert_like(keys, c, "hidden_act");
  keys.integer("relative_attention_num_buckets", c.position_buckets, 1, 1 << 16, 32);
  keys.ends(c, true);
  if (!keys.reading()) return;
  // Its makers' code counts distances in 32 buckets up to 128, whatever the table has.
  if (c.position_buckets != 32)
    throw keys.json().error("relative_attention_num_buckets", "32", std::to_string(c.position_buckets),
                            "distances are counted in 32 buckets in this family");
  if (c.context <= before_first)
    throw keys.json().error("max_position_embeddings", "more than 2, where positions begin", std::to_string(c.context));
  c.context -= before_first;
  c.position_offset = before_first;
  c.buckets_too = true;
  c.position_distance = 128;
  c.head_activation = Activation::gelu;
}

WeightNames mpnet_names(const ModelConfig& c) {
  WeightNames names = roberta_names(c);
  names.prefixes = {"mpnet.", ""};
  names.q = "attention.attn.q";
  names.k = "attention.attn.k";
  names.v = "attention.attn.v";
  names.o = "attention.attn.o";
  names.ln1 = "attention.LayerNorm";
  names.buckets = "encoder.relative_attention_bias";
  return names;
}
}  // namespace

Family mpnet_family();  // declared with all others in family.cpp
Family mpnet_family() {
  return usual_family("mpnet", "MPNetForMaskedLM",
                      to_say("an encoder: BERT without segments, with biases for buckets of distances too"),
                      &mpnet_keys, &mpnet_names);
}

}  // namespace headscope
