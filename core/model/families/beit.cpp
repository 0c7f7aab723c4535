// BEiT (Bao et al., BEiT: BERT Pre-Training of Image Transformers, 2022): a ViT whose scores gain a learned number for
// every way from patch to patch, of each layer or of all, with scales of what is added. A classifier that reads the
// mean of all patches is left out; where it reads CLS it is read.

#include "core/model/families/beit.h"

#include "core/attention/positions/place_bias.h"
#include "core/base/words.h"
#include "core/model/families/vit.h"

namespace headscope {

void beit_keys(ConfigMap& keys, ModelConfig& c) {
  bool absolute = c.position == PositionKind::learned, shared = c.has_buckets() && !c.buckets_by_layer,
       own = c.buckets_by_layer, mean = c.bare_end;
  keys.flag("use_absolute_position_embeddings", absolute, false);
  keys.flag("use_relative_position_bias", own, false);
  keys.flag("use_shared_relative_position_bias", shared, false);
  keys.flag("use_mean_pooling", mean, true);
  double scale = c.layer_scales ? 0.1 : 0;
  keys.number("layer_scale_init_value", scale, -1e3, 1e3, 0.1);
  if (keys.reading()) {
    c.vision.emplace();
    c.causal = false;
    c.tied_embeddings = false;
    c.bias.unembedding = true;
    c.bias.k = false;
    c.layer_scales = scale > 0;
    c.bare_end = mean;
    keys.predicts(c);
    c.predicts = c.predicts && !mean;
  }
  keys.extents(c, {.kv_heads = "", .d_head = "", .context = "", .vocab = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-12);
  keys.activation("hidden_act", c.activation, "gelu");
  keys.picture(c);
  if (!keys.reading()) return;
  VisionConfig& v = *c.vision;
  c.position = absolute ? PositionKind::learned : PositionKind::none;
  const ConfigReader& json = keys.json();
  if (own && shared)
    throw json.error("use_shared_relative_position_bias", "false, where every layer has biases of its own", "true",
                     "both at once are not read");
  if (own || shared) {
    if (v.rows() != v.columns())
      throw json.error("image_size", "as many patches down as across, where ways between them have biases",
                       std::to_string(v.rows()) + " and " + std::to_string(v.columns()));
    v.place_biases = true;
    c.buckets_by_layer = own;
    c.position_buckets = static_cast<int>(place_biases(v.rows(), v.columns()));
  }
  PicturePreparation& p = v.preparation;
  p.resize_height = v.height, p.resize_width = v.width;
  p.resample = Resample::bicubic;
}

WeightNames beit_names(const ModelConfig& c, const std::string& model) {
  const std::string bias = "relative_position_bias.relative_position_";
  WeightNames names = vit_names(model);
  names.leading_tokens = {"embeddings.cls_token"};
  names.scale1 = "lambda_1";
  names.scale2 = "lambda_2";
  names.buckets = (c.buckets_by_layer ? "attention.attention." : "encoder.") + bias + "bias_table";
  names.ignored = {"attention.attention." + bias + "index"};  // of older files
  return names;
}

Family beit_family();  // declared with all others in family.cpp
Family beit_family() {
  return usual_family("beit", "BeitForImageClassification",
                      to_say("reads pictures: a ViT with biases of the ways from patch to patch"), &beit_keys,
                      [](const ModelConfig& c) { return beit_names(c, "beit."); });
}

}  // namespace headscope
