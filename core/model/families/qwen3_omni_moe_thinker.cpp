// The thinker of Qwen3-Omni alone (Xu et al., Qwen3-Omni Technical Report, 2025), of which the half that reads text is
// read.

#include "core/model/families/qwen_omni.h"

namespace headscope {

Family qwen3_omni_moe_thinker_family();  // declared with all others in family.cpp
Family qwen3_omni_moe_thinker_family() {
  return qwen3_omni_half("qwen3_omni_moe_thinker", "Qwen3OmniMoeThinkerForConditionalGeneration", "");
}

}  // namespace headscope
