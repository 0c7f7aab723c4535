// The thinker of Qwen2.5-Omni alone (Xu et al., Qwen2.5-Omni Technical Report, 2025), of which the half that reads text
// is read.

#include "core/model/families/qwen_omni.h"

namespace headscope {

Family qwen2_5_omni_thinker_family();  // declared with all others in family.cpp
Family qwen2_5_omni_thinker_family() {
  return qwen2_5_omni_half("qwen2_5_omni_thinker", "Qwen2_5OmniThinkerForConditionalGeneration", "");
}

}  // namespace headscope
