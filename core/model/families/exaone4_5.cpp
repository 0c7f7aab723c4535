// EXAONE 4.5 (LG AI Research, 2026), of which the half that reads text is read. What predicts further tokens stands
// outside its blocks, and is not read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family exaone4_5_family();  // declared with all others in family.cpp
Family exaone4_5_family() {
  return text_half_family({.model_type = "exaone4_5",
                           .architecture = "Exaone4_5_ForConditionalGeneration",
                           .summary = to_say("as exaone4: the half that reads text, pictures are not read"),
                           .types = {"exaone4"}});
}

}  // namespace headscope
