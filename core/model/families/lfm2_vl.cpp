// LFM2-VL (Liquid AI, LFM2 Technical Report, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family lfm2_vl_family();  // declared with all others in family.cpp
Family lfm2_vl_family() {
  return text_half_family({.model_type = "lfm2_vl",
                           .architecture = "Lfm2VlForConditionalGeneration",
                           .summary = to_say("as lfm2: the half that reads text, pictures are not read"),
                           .types = {"lfm2", "lfm2_moe"},
                           .tied = true});
}

}  // namespace headscope
