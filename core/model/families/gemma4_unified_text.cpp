// The half of Gemma 4 12B that reads text (Gemma Team, Gemma 4 12B, 2026), by itself.

#include "core/base/words.h"
#include "core/model/families/gemma4.h"

namespace headscope {

Family gemma4_unified_text_family();  // declared with all others in family.cpp
Family gemma4_unified_text_family() {
  return usual_family("gemma4_unified_text", "Gemma4UnifiedForCausalLM",
                      to_say("as gemma4_text, without inputs of every layer's own and without experts"),
                      &gemma4_unified_text_keys, &gemma4_names);
}

}  // namespace headscope
