// Idefics 2 (Laurençon et al., What matters when building vision-language models?, 2024), of which the half that reads
// text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family idefics2_family();  // declared with all others in family.cpp
Family idefics2_family() {
  return text_half_family({.model_type = "idefics2",
                           .architecture = "Idefics2ForConditionalGeneration",
                           .summary = to_say("as mistral: the half that reads text, pictures are not read"),
                           .types = {"mistral"}});
}

}  // namespace headscope
