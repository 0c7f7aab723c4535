// Qianfan-OCR (Baidu, 2026), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family qianfan_ocr_family();  // declared with all others in family.cpp
Family qianfan_ocr_family() {
  return text_half_family({.model_type = "qianfan_ocr",
                           .architecture = "QianfanOCRForConditionalGeneration",
                           .summary = to_say("as qwen3: the half that reads text, pictures are not read"),
                           .types = {"qwen3"}});
}

}  // namespace headscope
