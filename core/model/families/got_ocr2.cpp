// GOT-OCR 2 (Wei et al., General OCR Theory: Towards OCR-2.0 via a Unified End-to-end Model, 2024), of which the half
// that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family got_ocr2_family();  // declared with all others in family.cpp
Family got_ocr2_family() {
  return text_half_family({.model_type = "got_ocr2",
                           .architecture = "GotOcr2ForConditionalGeneration",
                           .summary = to_say("as qwen2: the half that reads text, pictures are not read"),
                           .types = {"qwen2"},
                           .tied = true});
}

}  // namespace headscope
