// MiniCPM-OCR (OpenBMB, 2026), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family minicpm_ocr_family();  // declared with all others in family.cpp
Family minicpm_ocr_family() {
  return text_half_family({.model_type = "minicpm_ocr",
                           .architecture = "MiniCPMOcrForConditionalGeneration",
                           .summary = to_say("as qwen3_5_text: the half that reads text, pictures are not read"),
                           .types = {"qwen3_5_text"},
                           .tied = true});
}

}  // namespace headscope
