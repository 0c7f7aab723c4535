// Idefics 3 (Laurençon et al., Building and better understanding vision-language models, 2024), of which the half that
// reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family idefics3_family();  // declared with all others in family.cpp
Family idefics3_family() {
  return text_half_family({.model_type = "idefics3",
                           .architecture = "Idefics3ForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, pictures are not read"),
                           .types = {"llama"}});
}

}  // namespace headscope
