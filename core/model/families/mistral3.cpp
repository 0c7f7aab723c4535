// Mistral Small 3.1 and 3.2, Ministral 3, Mistral Small 4 (Mistral AI, 2025 and 2026), of which the half that reads
// text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family mistral3_family();  // declared with all others in family.cpp
Family mistral3_family() {
  return text_half_family(
      {.model_type = "mistral3",
       .architecture = "Mistral3ForConditionalGeneration",
       .summary = to_say("as mistral, ministral3 or mistral4: the half that reads text, pictures are not read"),
       .types = {"mistral", "ministral3", "mistral4"}});
}

}  // namespace headscope
