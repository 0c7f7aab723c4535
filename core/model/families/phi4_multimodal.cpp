// Phi 4 Multimodal (Abouelenin et al., Phi-4-Mini Technical Report, 2025), of which what reads text is read: Phi 3,
// whose file holds encoders of pictures and sounds beside it.

#include "core/base/words.h"
#include "core/model/families/phi3.h"

namespace headscope {

Family phi4_multimodal_family();  // declared with all others in family.cpp
Family phi4_multimodal_family() {
  return usual_family("phi4_multimodal", "Phi4MultimodalForCausalLM",
                      to_say("as phi3: the half that reads text, pictures and sounds are not read"), &phi3_keys,
                      &phi3_names);
}

}  // namespace headscope
