// LLaVA-OneVision (Li et al., LLaVA-OneVision: Easy Visual Task Transfer, 2024), of which the half that reads text is
// read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family llava_onevision_family();  // declared with all others in family.cpp
Family llava_onevision_family() {
  return text_half_family({.model_type = "llava_onevision",
                           .architecture = "LlavaOnevisionForConditionalGeneration",
                           .summary = to_say("as qwen2: the half that reads text, pictures are not read"),
                           .types = {"qwen2", "llama", "mistral"}});
}

}  // namespace headscope
