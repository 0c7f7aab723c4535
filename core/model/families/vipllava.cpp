// ViP-LLaVA (Cai et al., ViP-LLaVA: Making Large Multimodal Models Understand Arbitrary Visual Prompts, 2024), of which
// the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family vipllava_family();  // declared with all others in family.cpp
Family vipllava_family() {
  return text_half_family({.model_type = "vipllava",
                           .architecture = "VipLlavaForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, pictures are not read"),
                           .types = {"llama"}});
}

}  // namespace headscope
