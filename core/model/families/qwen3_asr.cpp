// Qwen3-ASR (Qwen Team, 2026), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family qwen3_asr_family();  // declared with all others in family.cpp
Family qwen3_asr_family() {
  return text_half_family({.model_type = "qwen3_asr",
                           .architecture = "Qwen3ASRForConditionalGeneration",
                           .summary = to_say("as qwen3: the half that reads text, sounds are not read"),
                           .types = {"qwen3"},
                           .tied = true});
}

}  // namespace headscope
