// SmolVLM (Marafioti et al., SmolVLM: Redefining small and efficient multimodal models, 2025), of which the half that
// reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family smolvlm_family();  // declared with all others in family.cpp
Family smolvlm_family() {
  return text_half_family({.model_type = "smolvlm",
                           .architecture = "SmolVLMForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, pictures are not read"),
                           .types = {"llama"}});
}

}  // namespace headscope
