// Ovis 2 (Lu et al., Ovis: Structural Embedding Alignment for Multimodal Large Language Model, 2024), of which the half
// that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family ovis2_family();  // declared with all others in family.cpp
Family ovis2_family() {
  return text_half_family({.model_type = "ovis2",
                           .architecture = "Ovis2ForConditionalGeneration",
                           .summary = to_say("as qwen2: the half that reads text, pictures are not read"),
                           .types = {"qwen2"},
                           .tied = true});
}

}  // namespace headscope
