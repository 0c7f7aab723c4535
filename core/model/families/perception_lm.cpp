// PerceptionLM (Cho et al., PerceptionLM: Open-Access Data and Models for Detailed Visual Understanding, 2025), of
// which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family perception_lm_family();  // declared with all others in family.cpp
Family perception_lm_family() {
  return text_half_family({.model_type = "perception_lm",
                           .architecture = "PerceptionLMForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, pictures are not read"),
                           .types = {"llama"}});
}

}  // namespace headscope
