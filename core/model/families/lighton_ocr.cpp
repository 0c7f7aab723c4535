// LightOnOCR (LightOn, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family lighton_ocr_family();  // declared with all others in family.cpp
Family lighton_ocr_family() {
  return text_half_family({.model_type = "lighton_ocr",
                           .architecture = "LightOnOcrForConditionalGeneration",
                           .summary = to_say("as qwen3: the half that reads text, pictures are not read"),
                           .types = {"qwen3"},
                           .tied = true});
}

}  // namespace headscope
