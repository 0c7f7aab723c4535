// RoFormer (Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021): BERT whose queries and
// keys are rotated, adjacent pairs, in place of positions that are added.

#include "core/base/words.h"
#include "core/model/families/bert.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void roformer_keys(ConfigMap& keys, ModelConfig& c) {
  bert_keys(keys, c);
  int width = c.sum_width();
  keys.integer("embedding_size", width, 1, config_limits::d_model, c.dims.d_model);
  keys.only("rotary_value", false, "values that are rotated are not read");
  if (!keys.reading()) return;
  if (width != c.dims.d_model) c.dims.d_embed = c.embedding_width = width;
  if (c.dims.d_head % 2 != 0)
    throw keys.json().error("hidden_size / num_attention_heads", "an even number, since rotary positions turn pairs",
                            std::to_string(c.dims.d_head));
  c.position = PositionKind::rotary;
  c.rotary.layout = RotaryLayout::interleaved;
}

WeightNames roformer_names(const ModelConfig&) {
  WeightNames names = bert_names("roformer.");
  names.embedding_in = "embeddings_project";
  return names;
}
}  // namespace

Family roformer_family();  // declared with all others in family.cpp
Family roformer_family() {
  return usual_family("roformer", "RoFormerForMaskedLM", to_say("an encoder: BERT with rotary positions"),
                      &roformer_keys, &roformer_names);
}

}  // namespace headscope
