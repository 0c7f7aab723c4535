// I-JEPA (Assran et al., Self-Supervised Learning from Images with a Joint-Embedding Predictive Architecture, 2023): a
// ViT of patches alone, which learned to tell of some what others hold. It ends with vectors.

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

namespace {
void ijepa_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading()) {
    c.vision.emplace();
    c.vision->leading = 0;
    c.causal = false;
    c.position = PositionKind::learned;
    c.tied_embeddings = false;
    c.predicts = false;
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

WeightNames ijepa_names(const ModelConfig&) {
  WeightNames names = vit_names("ijepa.");
  names.leading_tokens.clear();
  return names;
}
}  // namespace

Family ijepa_family();  // declared with all others in family.cpp
Family ijepa_family() {
  return usual_family("ijepa", "IJepa", to_say("reads pictures: a ViT of patches alone, without classes"), &ijepa_keys,
                      &ijepa_names);
}

}  // namespace headscope
