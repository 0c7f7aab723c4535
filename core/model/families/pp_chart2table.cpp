// PP-Chart2Table (Baidu, PaddleOCR 3.0 Technical Report, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family pp_chart2table_family();  // declared with all others in family.cpp
Family pp_chart2table_family() {
  return text_half_family({.model_type = "pp_chart2table",
                           .architecture = "GotOcr2ForConditionalGeneration",
                           .summary = to_say("as qwen2: the half that reads text, pictures are not read"),
                           .types = {"qwen2"},
                           .tied = true});
}

}  // namespace headscope
