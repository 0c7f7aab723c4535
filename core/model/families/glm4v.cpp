// GLM-4.1V (GLM-V Team, GLM-4.5V and GLM-4.1V-Thinking, 2025), of which the half that reads text is read: its rotation
// knows time, height and width, which are one position in a text.

#include "core/base/words.h"
#include "core/model/families/glm.h"
#include "core/model/families/text_half.h"

namespace headscope {

void glm4v_text_keys(ConfigMap& keys, ModelConfig& c) {
  glm_like(keys, c, {.d_head = 0, .epsilon = 1e-5, .share = 1});
  c.norm_place = NormPlace::both;
}

Family glm4v_family();  // declared with all others in family.cpp
Family glm4v_family() {
  return text_half_family({.model_type = "glm4v",
                           .architecture = "Glm4vForConditionalGeneration",
                           .summary = to_say("as glm4: the half that reads text, pictures are not read"),
                           .types = {"glm4v_text"},
                           .map = &glm4v_text_keys,
                           .names = &glm4_names});
}

}  // namespace headscope
