// ViT (Dosovitskiy et al., An Image is Worth 16x16 Words, 2021): patches of a picture behind a learned token, in whose
// place the classes are read; learned positions, norms before, every token sees every other.

#include "core/model/families/vit.h"

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

void vit_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading()) {
    c.vision.emplace();
    c.causal = false;
    c.position = PositionKind::learned;
    c.tied_embeddings = false;
    c.bias.unembedding = true;
    keys.predicts(c);
  }
  keys.extents(c, {.kv_heads = "", .d_head = "", .context = "", .vocab = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-12);
  keys.activation("hidden_act", c.activation, "gelu");
  keys.flag("qkv_bias", c.bias.q, true);
  if (keys.reading()) c.bias.k = c.bias.v = c.bias.q;
  keys.picture(c);
  if (!keys.reading()) return;
  PicturePreparation& p = c.vision->preparation;
  p.resize_height = c.vision->height, p.resize_width = c.vision->width;
}

WeightNames vit_names(const std::string& model) {
  WeightNames names;
  names.prefixes = {model, ""};
  names.embedding = "embeddings.patch_embeddings.projection";
  names.leading_tokens = {"embeddings.cls_token", "embeddings.distillation_token"};
  names.positions = "embeddings.position_embeddings";
  names.positions_are_embedding = false;
  names.block = "encoder.layer.";
  names.ln1 = "layernorm_before";
  names.ln2 = "layernorm_after";
  names.q = "attention.attention.query";
  names.k = "attention.attention.key";
  names.v = "attention.attention.value";
  names.o = "attention.output.dense";
  names.up = "intermediate.dense";
  names.down = "output.dense";
  names.final_norm = "layernorm";
  names.unembedding = "classifier";
  return names;
}

Family vit_family();  // declared with all others in family.cpp
Family vit_family() {
  return usual_family("vit", "ViTForImageClassification", to_say("reads pictures: patches behind a CLS token"),
                      &vit_keys, [](const ModelConfig&) { return vit_names("vit."); });
}

}  // namespace headscope
