// FastVLM (Vasu et al., FastVLM: Efficient Vision Encoding for Vision Language Models, 2024), of which the half that
// reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family fast_vlm_family();  // declared with all others in family.cpp
Family fast_vlm_family() {
  return text_half_family({.model_type = "fast_vlm",
                           .architecture = "FastVlmForConditionalGeneration",
                           .summary = to_say("as qwen2: the half that reads text, pictures are not read"),
                           .types = {"qwen2"}});
}

}  // namespace headscope
