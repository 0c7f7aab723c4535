// Qwen3.5 with experts (Qwen Team, 2026), of which the half that reads text is read, as of Qwen3.5 without.

#include "core/base/words.h"
#include "core/model/families/qwen3_5.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family qwen3_5_moe_family();  // declared with all others in family.cpp
Family qwen3_5_moe_family() {
  return text_half_family({.model_type = "qwen3_5_moe",
                           .architecture = "Qwen3_5MoeForConditionalGeneration",
                           .summary = to_say("as qwen3_5_moe_text: the half that reads text, pictures are not read"),
                           .types = {"qwen3_5_moe_text"},
                           .map = &qwen3_5_moe_keys,
                           .names = &qwen3_5_moe_names});
}

}  // namespace headscope
