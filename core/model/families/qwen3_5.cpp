// Qwen3.5 (Qwen Team, 2026), of which the half that reads text is read: its rotation knows time, height and width,
// which are one position in a text.

#include "core/model/families/qwen3_5.h"

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family qwen3_5_family();  // declared with all others in family.cpp
Family qwen3_5_family() {
  return text_half_family({.model_type = "qwen3_5",
                           .architecture = "Qwen3_5ForConditionalGeneration",
                           .summary = to_say("as qwen3_5_text: the half that reads text, pictures are not read"),
                           .types = {"qwen3_5_text"},
                           .map = &qwen3_5_keys,
                           .names = &qwen3_5_names});
}

}  // namespace headscope
