// ViT MAE (He et al., Masked Autoencoders Are Scalable Vision Learners, 2022): a ViT that learned to fill in what was
// hidden of pictures. It reads the whole picture here; what paints the hidden patches is left out.

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

namespace {
void vit_mae_keys(ConfigMap& keys, ModelConfig& c) {
  vit_keys(keys, c);
  if (!keys.reading()) return;
  c.predicts = false;
  c.dims.vocab = 0;
  c.vision->labels.clear();
  c.vision->preparation.mean = {0.485, 0.456, 0.406}, c.vision->preparation.std = {0.229, 0.224, 0.225};
}
}  // namespace

Family vit_mae_family();  // declared with all others in family.cpp
Family vit_mae_family() {
  return usual_family("vit_mae", "ViTMAE", to_say("reads pictures: a ViT that learned to fill them in"), &vit_mae_keys,
                      [](const ModelConfig&) { return vit_names("vit."); });
}

}  // namespace headscope
