// InternVL 3 (Zhu et al., InternVL3: Exploring Advanced Training and Test-Time Recipes for Open-Source Multimodal
// Models, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family internvl_family();  // declared with all others in family.cpp
Family internvl_family() {
  return text_half_family({.model_type = "internvl",
                           .architecture = "InternVLForConditionalGeneration",
                           .summary = to_say("as qwen2: the half that reads text, pictures are not read"),
                           .types = {"qwen2", "qwen3", "llama"}});
}

}  // namespace headscope
