// LLaVA 1.5 (Liu et al., Improved Baselines with Visual Instruction Tuning, 2023), of which the half that reads text is
// read: a Llama or what stands in its place.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family llava_family();  // declared with all others in family.cpp
Family llava_family() {
  return text_half_family({.model_type = "llava",
                           .architecture = "LlavaForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, pictures are not read"),
                           .types = {"llama", "mistral", "qwen2"}});
}

}  // namespace headscope
