// DINOv2 (Oquab et al., DINOv2: Learning Robust Visual Features without Supervision, 2023): a ViT whose attention and
// MLP add what they make times a learned number of each dimension, and whose positions are read for pictures of any
// size by interpolation. It ends with vectors; a classifier beside them reads CLS and the mean of all patches, and is
// left out.

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

namespace {
/// Neurons of the gated MLP: two thirds of those of one without a gate, in eights.
int gated_width(int width, int ratio) {
  return (width * ratio * 2 / 3 + 7) / 8 * 8;
}

}  // namespace

void dinov2_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading()) {
    if (!c.vision) c.vision.emplace();
    c.causal = false;
    c.position = PositionKind::learned;
    c.tied_embeddings = false;
    c.layer_scales = true;
    c.predicts = false;
  } else {
    c.vision->height = c.vision->width = c.vision->stored_side * c.vision->patch;
  }
  keys.extents(c, {.kv_heads = "", .d_head = "", .mlp = "", .context = "", .vocab = "", .mlp_factor = 1});
  keys.flag("use_swiglu_ffn", c.gated_mlp, false);
  const auto neurons = [&](int ratio) {
    return c.gated_mlp ? gated_width(c.dims.d_model, ratio) : c.dims.d_model * ratio;
  };
  int ratio = 1;
  if (!keys.reading())
    while (neurons(ratio) < c.dims.d_mlp) ++ratio;
  keys.integer("mlp_ratio", ratio, 1, 64, 4);
  c.dims.d_mlp = neurons(ratio);
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-6);
  keys.activation("hidden_act", c.activation, "gelu");
  if (c.gated_mlp) c.activation = Activation::silu;
  keys.flag("qkv_bias", c.bias.q, true);
  keys.picture(c);
  if (!keys.reading()) return;
  c.bias.k = c.bias.v = c.bias.q;
  VisionConfig& v = *c.vision;
  if (v.height != v.width)
    throw keys.json().error("image_size", "as many pixels of height as of width",
                            std::to_string(v.height) + " and " + std::to_string(v.width));
  v.stored_side = v.rows();
  PicturePreparation& p = v.preparation;
  p.shortest_edge = v.height * 8 / 7;
  p.crop_height = v.height, p.crop_width = v.width;
  p.resample = Resample::bicubic;
  p.mean = {0.485, 0.456, 0.406}, p.std = {0.229, 0.224, 0.225};
}

WeightNames dinov2_names(const ModelConfig& c) {
  WeightNames names = vit_names("dinov2.");
  names.leading_tokens = {"embeddings.cls_token"};
  names.ln1 = "norm1";
  names.ln2 = "norm2";
  names.scale1 = "layer_scale1.lambda1";
  names.scale2 = "layer_scale2.lambda1";
  names.up = "mlp.fc1";
  names.down = c.gated_mlp ? "mlp.weights_out" : "mlp.fc2";
  names.gate_up = "mlp.weights_in";
  return names;
}

Family dinov2_family();  // declared with all others in family.cpp
Family dinov2_family() {
  return usual_family("dinov2", "Dinov2", to_say("reads pictures: a ViT with scales of what is added, without classes"),
                      &dinov2_keys, &dinov2_names);
}

}  // namespace headscope
