// MiniCPM-V 4.7 (OpenBMB, 2026), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family minicpmv4_7_family();  // declared with all others in family.cpp
Family minicpmv4_7_family() {
  return text_half_family({.model_type = "minicpmv4_7",
                           .architecture = "MiniCPMV4_7ForConditionalGeneration",
                           .summary = to_say("as qwen3_5_text: the half that reads text, pictures are not read"),
                           .types = {"qwen3_5_text"}});
}

}  // namespace headscope
