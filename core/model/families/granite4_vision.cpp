// Granite 4.0 Vision (IBM, 2026), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family granite4_vision_family();  // declared with all others in family.cpp
Family granite4_vision_family() {
  return text_half_family({.model_type = "granite4_vision",
                           .architecture = "Granite4VisionForConditionalGeneration",
                           .summary = to_say("as granite: the half that reads text, pictures are not read"),
                           .types = {"granite4_vision_text"},
                           .as = "granite"});
}

}  // namespace headscope
