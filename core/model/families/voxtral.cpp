// Voxtral (Liu et al., Voxtral, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family voxtral_family();  // declared with all others in family.cpp
Family voxtral_family() {
  return text_half_family({.model_type = "voxtral",
                           .architecture = "VoxtralForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, sounds are not read"),
                           .types = {"llama"}});
}

}  // namespace headscope
