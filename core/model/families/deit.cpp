// DeiT (Touvron et al., Training data-efficient image transformers & distillation through attention, 2021): a ViT with
// a second learned token, which a teacher's answers were distilled into. Files for both tokens
// (…ForImageClassificationWithTeacher) give the mean of what the two say.

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

namespace {
void deit_keys(ConfigMap& keys, ModelConfig& c) {
  vit_keys(keys, c);
  if (!keys.reading()) return;
  VisionConfig& v = *c.vision;
  v.leading = 2;
  c.context = v.tokens();
  const auto classes = keys.json().texts("architectures");
  if (classes && !classes->empty() && classes->front().ends_with("WithTeacher")) v.class_heads = 2;
  PicturePreparation& p = v.preparation;  // 256 × 256, of which 224 × 224 stay
  p.resize_height = v.height * 8 / 7, p.resize_width = v.width * 8 / 7;
  p.crop_height = v.height, p.crop_width = v.width;
  p.resample = Resample::bicubic;
  p.mean = {0.485, 0.456, 0.406}, p.std = {0.229, 0.224, 0.225};
}

WeightNames deit_names(const ModelConfig& c) {
  WeightNames names = vit_names("deit.");
  if (c.vision->class_heads == 2) {
    names.unembedding = "cls_classifier";
    names.second_unembedding = "distillation_classifier";
  }
  return names;
}
}  // namespace

Family deit_family();  // declared with all others in family.cpp
Family deit_family() {
  Family family =
      usual_family("deit", "DeiTForImageClassification",
                   to_say("reads pictures: patches behind a CLS and a distillation token"), &deit_keys, &deit_names);
  family.write_config = [](const ModelConfig& config) {
    const bool two = config.vision->class_heads == 2;
    return usual_family("deit", two ? "DeiTForImageClassificationWithTeacher" : "DeiTForImageClassification", "",
                        &deit_keys, &deit_names)
        .write_config(config);
  };
  return family;
}

}  // namespace headscope
