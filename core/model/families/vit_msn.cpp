// ViT MSN (Assran et al., Masked Siamese Networks for Label-Efficient Learning, 2022): a ViT that learned to tell
// pictures of which parts were hidden from others.

#include <string>

#include "core/base/words.h"
#include "core/model/families/usual.h"
#include "core/model/families/vit.h"

namespace headscope {

namespace {
/// Newer versions of the library write "vit." before all names but those of the blocks.
RawWeights vit_msn_weights(const WeightSource& source, const ModelConfig& c) {
  WeightNames names = vit_names("vit.");
  const std::string first = "encoder.layer.0.output.dense.weight";
  if (source.contains("vit.embeddings.cls_token") && source.contains(first)) {
    names.prefixes = {""};
    for (std::string* name : {&names.embedding, &names.positions, &names.final_norm}) name->insert(0, "vit.");
    for (std::string& name : names.leading_tokens) name.insert(0, "vit.");
  }
  return read_usual_weights(source, c, names);
}
}  // namespace

Family vit_msn_family();  // declared with all others in family.cpp
Family vit_msn_family() {
  Family made = usual_family(
      "vit_msn", "ViTMSNForImageClassification", to_say("reads pictures: a ViT that learned from hidden parts"),
      [](ConfigMap& keys, ModelConfig& c) {
        vit_keys(keys, c);
        if (keys.reading()) c.norm_epsilon = keys.json().number("layer_norm_eps", 0, 1, 1e-6);
      },
      [](const ModelConfig&) { return vit_names("vit."); });
  made.read_weights = &vit_msn_weights;
  return made;
}

}  // namespace headscope
