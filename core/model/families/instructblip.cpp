// InstructBLIP (Dai et al., InstructBLIP: Towards General-purpose Vision-Language Models with Instruction Tuning,
// 2023), of which the half that reads text is read. It was trained behind what a picture gives it; a text alone goes to
// that half, as the library's whole asks for a picture.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family instructblip_family();  // declared with all others in family.cpp
Family instructblip_family() {
  return text_half_family({.model_type = "instructblip",
                           .architecture = "InstructBlipForConditionalGeneration",
                           .summary = to_say("as llama or opt: the half that reads text, pictures are not read"),
                           .types = {"opt", "llama"}});
}

}  // namespace headscope
