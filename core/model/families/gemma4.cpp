// Gemma 4 as it is published (Gemma Team, Gemma 4, 2026), of which the half that reads text is read.

#include "core/model/families/gemma4.h"

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family gemma4_family();  // declared with all others in family.cpp
Family gemma4_family() {
  return text_half_family(
      {.model_type = "gemma4",
       .architecture = "Gemma4ForConditionalGeneration",
       .summary = to_say("as gemma4_text: the half that reads text, pictures and sounds are not read"),
       .types = {"gemma4_text"},
       .map = &gemma4_text_keys,
       .names = &gemma4_names,
       .usual = gemma4_usual(131072)});
}

}  // namespace headscope
