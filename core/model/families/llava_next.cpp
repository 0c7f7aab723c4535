// LLaVA 1.6 (Liu et al., LLaVA-NeXT, 2024), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family llava_next_family();  // declared with all others in family.cpp
Family llava_next_family() {
  return text_half_family({.model_type = "llava_next",
                           .architecture = "LlavaNextForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, pictures are not read"),
                           .types = {"llama", "mistral", "qwen2"}});
}

}  // namespace headscope
