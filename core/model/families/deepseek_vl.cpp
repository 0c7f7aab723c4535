// DeepSeek-VL (Lu et al., DeepSeek-VL: Towards Real-World Vision-Language Understanding, 2024), of which the half that
// reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family deepseek_vl_family();  // declared with all others in family.cpp
Family deepseek_vl_family() {
  return text_half_family({.model_type = "deepseek_vl",
                           .architecture = "DeepseekVLForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, pictures are not read"),
                           .types = {"llama"},
                           .tied = true});
}

}  // namespace headscope
