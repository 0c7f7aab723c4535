// Fun-ASR-Nano (Alibaba, Fun-ASR Technical Report, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family fun_asr_nano_family();  // declared with all others in family.cpp
Family fun_asr_nano_family() {
  return text_half_family({.model_type = "fun_asr_nano",
                           .architecture = "FunAsrNanoForConditionalGeneration",
                           .summary = to_say("as qwen3: the half that reads text, sounds are not read"),
                           .types = {"qwen3"},
                           .tied = true});
}

}  // namespace headscope
