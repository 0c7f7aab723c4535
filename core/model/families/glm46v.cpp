// GLM-4.6V-Flash (GLM-V Team, 2025), of which the half that reads text is read, as of GLM-4.1V.

#include "core/base/words.h"
#include "core/model/families/glm.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family glm46v_family();  // declared with all others in family.cpp
Family glm46v_family() {
  return text_half_family({.model_type = "glm46v",
                           .architecture = "Glm46VForConditionalGeneration",
                           .summary = to_say("as glm4: the half that reads text, pictures are not read"),
                           .types = {"glm4v_text"},
                           .map = &glm4v_text_keys,
                           .names = &glm4_names});
}

}  // namespace headscope
