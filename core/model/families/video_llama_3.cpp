// VideoLLaMA 3 (Zhang et al., VideoLLaMA 3: Frontier Multimodal Foundation Models for Image and Video Understanding,
// 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family video_llama_3_family();  // declared with all others in family.cpp
Family video_llama_3_family() {
  return text_half_family({.model_type = "video_llama_3",
                           .architecture = "VideoLlama3ForConditionalGeneration",
                           .summary = to_say("as qwen2: the half that reads text, pictures are not read"),
                           .types = {"qwen2"}});
}

}  // namespace headscope
