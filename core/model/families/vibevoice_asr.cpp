// VibeVoice-ASR (Microsoft, 2026), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family vibevoice_asr_family();  // declared with all others in family.cpp
Family vibevoice_asr_family() {
  return text_half_family({.model_type = "vibevoice_asr",
                           .architecture = "VibeVoiceAsrForConditionalGeneration",
                           .summary = to_say("as qwen2: the half that reads text, sounds are not read"),
                           .types = {"qwen2"}});
}

}  // namespace headscope
