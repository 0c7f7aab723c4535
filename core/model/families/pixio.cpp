// Pixio (Yang et al., In Pursuit of Pixel Supervision for Visual Pre-training, 2025): a ViT with several CLS tokens,
// which learned to fill in what was hidden of pictures. It ends with vectors.

#include <algorithm>
#include <string>

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

namespace {
void pixio_keys(ConfigMap& keys, ModelConfig& c) {
  int tokens = c.vision ? c.vision->leading : 0;
  keys.integer("n_cls_tokens", tokens, 1, 1024, 8);
  if (keys.reading()) {
    c.vision.emplace();
    c.vision->leading = tokens;
  }
  dinov2_keys(keys, c);
  if (!keys.reading()) return;
  c.layer_scales = false;
  PicturePreparation& p = c.vision->preparation;
  p.shortest_edge = p.crop_height = p.crop_width = 0;
  p.resize_height = c.vision->height, p.resize_width = c.vision->width;
}

WeightNames pixio_names(const ModelConfig&) {
  WeightNames names = vit_names("pixio.");
  names.leading_in_one = "embeddings.cls_token";
  names.ln1 = "norm1";
  names.ln2 = "norm2";
  return names;
}

/// Files of its makers call the MLP's matrices otherwise than those that newer versions of the library write.
RawWeights pixio_weights(const WeightSource& source, const ModelConfig& c) {
  WeightNames names = pixio_names(c);
  const auto has = [&](const std::string& prefix) {
    return source.contains(prefix + "encoder.layer.0.mlp.fc1.weight");
  };
  if (std::ranges::any_of(names.prefixes, has)) names.up = "mlp.fc1", names.down = "mlp.fc2";
  return read_usual_weights(source, c, names);
}
}  // namespace

Family pixio_family();  // declared with all others in family.cpp
Family pixio_family() {
  Family made = usual_family("pixio", "Pixio", to_say("reads pictures: a ViT with several CLS tokens, without classes"),
                             &pixio_keys, &pixio_names);
  made.read_weights = &pixio_weights;
  return made;
}

}  // namespace headscope
