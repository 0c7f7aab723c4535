// Janus and Janus-Pro (Chen et al., Janus-Pro: Unified Multimodal Understanding and Generation with Data and Model
// Scaling, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family janus_family();  // declared with all others in family.cpp
Family janus_family() {
  return text_half_family({.model_type = "janus",
                           .architecture = "JanusForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, pictures are not read"),
                           .types = {"llama"},
                           .tied = true});
}

}  // namespace headscope
