// HyperCLOVA X SEED Think 32B (NAVER Cloud, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family hyperclovax_vision_v2_family();  // declared with all others in family.cpp
Family hyperclovax_vision_v2_family() {
  return text_half_family({.model_type = "hyperclovax_vision_v2",
                           .architecture = "HyperCLOVAXVisionV2ForConditionalGeneration",
                           .summary = to_say("as hyperclovax: the half that reads text, pictures are not read"),
                           .types = {"hyperclovax"},
                           .tied = true});
}

}  // namespace headscope
