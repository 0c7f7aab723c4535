// data2vec of pictures (Baevski et al., data2vec: A General Framework for Self-supervised Learning in Speech, Vision
// and Language, 2022): BEiT that learned to tell what a slower copy of itself makes of the whole picture.

#include "core/base/words.h"
#include "core/model/families/beit.h"

namespace headscope {

Family data2vec_vision_family();  // declared with all others in family.cpp
Family data2vec_vision_family() {
  return usual_family("data2vec-vision", "Data2VecVisionForImageClassification",
                      to_say("reads pictures: BEiT that learned from a copy of itself"), &beit_keys,
                      [](const ModelConfig& c) { return beit_names(c, "data2vec_vision."); });
}

}  // namespace headscope
