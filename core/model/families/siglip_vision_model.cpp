// The half of SigLIP that sees (Zhai et al., Sigmoid Loss for Language Image Pre-Training, 2023): a ViT of patches
// alone. It ends with their vectors; what pools them into one, by attention, is left out.

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

void siglip_vision_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading()) {
    c.vision.emplace();
    c.vision->leading = 0;
    c.causal = false;
    c.position = PositionKind::learned;
    c.tied_embeddings = false;
    c.predicts = false;
  }
  keys.extents(c, {.kv_heads = "", .d_head = "", .context = "", .vocab = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-6);
  keys.activation("hidden_act", c.activation, "gelu_pytorch_tanh");
  keys.picture(c);
  if (!keys.reading()) return;
  VisionConfig& v = *c.vision;
  PicturePreparation& p = v.preparation;
  p.resize_height = v.height, p.resize_width = v.width;
  p.resample = Resample::bicubic;
}

WeightNames siglip_vision_names(const ModelConfig& c) {
  WeightNames names = clip_vision_names(c);
  names.leading_tokens.clear();
  return names;
}

Family siglip_vision_model_family();  // declared with all others in family.cpp
Family siglip_vision_model_family() {
  return usual_family("siglip_vision_model", "SiglipVision",
                      to_say("reads pictures: SigLIP's half that sees, patches alone, without their pooling"),
                      &siglip_vision_keys, &siglip_vision_names);
}

}  // namespace headscope
