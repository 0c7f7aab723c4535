// Qwen2-Audio (Chu et al., Qwen2-Audio Technical Report, 2024), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family qwen2_audio_family();  // declared with all others in family.cpp
Family qwen2_audio_family() {
  return text_half_family({.model_type = "qwen2_audio",
                           .architecture = "Qwen2AudioForConditionalGeneration",
                           .summary = to_say("as qwen2: the half that reads text, sounds are not read"),
                           .types = {"qwen2"}});
}

}  // namespace headscope
