// Gemma 4 without encoders of pictures and sounds (Gemma Team, Gemma 4 12B, 2026), of which the half that reads text is
// read.

#include "core/base/words.h"
#include "core/model/families/gemma4.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family gemma4_unified_family();  // declared with all others in family.cpp
Family gemma4_unified_family() {
  return text_half_family(
      {.model_type = "gemma4_unified",
       .architecture = "Gemma4UnifiedForConditionalGeneration",
       .summary = to_say("as gemma4_unified_text: the half that reads text, pictures and sounds are not read"),
       .types = {"gemma4_unified_text"},
       .map = &gemma4_unified_text_keys,
       .names = &gemma4_names,
       .usual = gemma4_usual(262144)});
}

}  // namespace headscope
