// The half of CLIP that sees (Radford et al., Learning Transferable Visual Models From Natural Language Supervision,
// 2021): a ViT with a norm before its blocks, whose patches have no bias. It ends with a vector, not with classes.

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

void clip_vision_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading()) {
    c.vision.emplace();
    c.vision->patch_bias = false;
    c.causal = false;
    c.position = PositionKind::learned;
    c.tied_embeddings = false;
    c.embedding_norm = c.norm_of_embeddings = true;
    c.predicts = false;
  }
  keys.extents(c, {.kv_heads = "", .d_head = "", .context = "", .vocab = ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-5);
  keys.activation("hidden_act", c.activation, "quick_gelu");
  keys.picture(c);
  if (!keys.reading()) return;
  VisionConfig& v = *c.vision;
  PicturePreparation& p = v.preparation;
  p.shortest_edge = v.height < v.width ? v.width : v.height;
  p.crop_height = v.height, p.crop_width = v.width;
  p.resample = Resample::bicubic;
  p.mean = {0.48145466, 0.4578275, 0.40821073}, p.std = {0.26862954, 0.26130258, 0.27577711};
}

WeightNames clip_vision_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {"vision_model.", ""};
  names.embedding = "embeddings.patch_embedding";
  names.leading_tokens = {"embeddings.class_embedding"};
  names.positions = "embeddings.position_embedding";
  names.embedding_norm = "pre_layrnorm";  // as OpenAI's files spell it
  names.block = "encoder.layers.";
  names.ln1 = "layer_norm1";
  names.ln2 = "layer_norm2";
  names.q = "self_attn.q_proj";
  names.k = "self_attn.k_proj";
  names.v = "self_attn.v_proj";
  names.o = "self_attn.out_proj";
  names.up = "mlp.fc1";
  names.down = "mlp.fc2";
  names.final_norm = "post_layernorm";
  return names;
}

Family clip_vision_model_family();  // declared with all others in family.cpp
Family clip_vision_model_family() {
  return usual_family("clip_vision_model", "CLIPVision",
                      to_say("reads pictures: CLIP's half that sees, without classes"), &clip_vision_keys,
                      &clip_vision_names);
}

}  // namespace headscope
