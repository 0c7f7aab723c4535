// DINOv3 (Siméoni et al., DINOv3, 2025): a ViT with registers, whose patches are turned by their row and their column
// in place of positions that are added.

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

namespace {
void dinov3_vit_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading()) {
    c.vision.emplace();
    c.causal = false;
    c.position = PositionKind::rotary;
    c.tied_embeddings = false;
    c.layer_scales = true;
    c.predicts = false;
  }
  keys.extents(c, {.kv_heads = "", .d_head = "", .context = "", .vocab = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-5);
  keys.activation("hidden_act", c.activation, "gelu");
  keys.flag("use_gated_mlp", c.gated_mlp, false);
  keys.flag("query_bias", c.bias.q, true);
  keys.flag("key_bias", c.bias.k, false);
  keys.flag("value_bias", c.bias.v, true);
  keys.flag("proj_bias", c.bias.o, true);
  keys.flag("mlp_bias", c.bias.up, true);
  c.bias.down = c.bias.up;
  keys.number("rope_theta", c.rotary.base, 1, 1e12, 100);
  VisionConfig& v = *c.vision;
  keys.integer("num_register_tokens", v.registers, 0, 1024, 0);
  v.leading = 1 + v.registers;
  keys.picture(c);
  if (!keys.reading()) return;
  if (c.dims.d_head % 4 != 0)
    throw keys.json().error("hidden_size / num_attention_heads", "a multiple of 4: pairs for rows and for columns",
                            std::to_string(c.dims.d_head));
  PicturePreparation& p = v.preparation;
  p.resize_height = v.height, p.resize_width = v.width;
  p.mean = {0.485, 0.456, 0.406}, p.std = {0.229, 0.224, 0.225};
}

WeightNames dinov3_vit_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {""};
  names.embedding = "embeddings.patch_embeddings";
  names.leading_tokens = {"embeddings.cls_token"};
  names.registers = "embeddings.register_tokens";
  names.positions_are_embedding = false;
  names.block = "layer.";
  names.ln1 = "norm1";
  names.ln2 = "norm2";
  names.q = "attention.q_proj";
  names.k = "attention.k_proj";
  names.v = "attention.v_proj";
  names.o = "attention.o_proj";
  names.scale1 = "layer_scale1.lambda1";
  names.scale2 = "layer_scale2.lambda1";
  return names;
}
}  // namespace

Family dinov3_vit_family();  // declared with all others in family.cpp
Family dinov3_vit_family() {
  return usual_family("dinov3_vit", "DINOv3ViT",
                      to_say("reads pictures: patches turned by their row and column, and registers"), &dinov3_vit_keys,
                      &dinov3_vit_names);
}

}  // namespace headscope
