// Command A Vision (Cohere, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family cohere2_vision_family();  // declared with all others in family.cpp
Family cohere2_vision_family() {
  return text_half_family({.model_type = "cohere2_vision",
                           .architecture = "Cohere2VisionForConditionalGeneration",
                           .summary = to_say("as cohere2: the half that reads text, pictures are not read"),
                           .types = {"cohere2"}});
}

}  // namespace headscope
