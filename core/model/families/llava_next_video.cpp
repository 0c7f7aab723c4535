// LLaVA-NeXT-Video (Zhang et al., 2024), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family llava_next_video_family();  // declared with all others in family.cpp
Family llava_next_video_family() {
  return text_half_family(
      {.model_type = "llava_next_video",
       .architecture = "LlavaNextVideoForConditionalGeneration",
       .summary = to_say("as llama or mistral or qwen2: the half that reads text, pictures are not read"),
       .types = {"llama", "mistral", "qwen2"}});
}

}  // namespace headscope
