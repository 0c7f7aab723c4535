// Kimi K2.5 (Moonshot AI, 2026), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family kimi_k25_family();  // declared with all others in family.cpp
Family kimi_k25_family() {
  return text_half_family({.model_type = "kimi_k25",
                           .architecture = "Kimi_K25ForConditionalGeneration",
                           .summary = to_say("as deepseek_v3: the half that reads text, pictures are not read"),
                           // Its own name for it is the second.
                           .types = {"deepseek_v3", "kimi_k2"},
                           .as = "deepseek_v3",
                           .tied = true});
}

}  // namespace headscope
