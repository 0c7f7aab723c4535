// Video-LLaVA (Lin et al., Video-LLaVA: Learning United Visual Representation by Alignment Before Projection, 2023), of
// which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family video_llava_family();  // declared with all others in family.cpp
Family video_llava_family() {
  return text_half_family({.model_type = "video_llava",
                           .architecture = "VideoLlavaForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, pictures are not read"),
                           .types = {"llama"}});
}

}  // namespace headscope
