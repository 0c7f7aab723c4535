// Qwen3-VL (Qwen Team, 2025), of which the half that reads text is read: its rotation knows time, height and width,
// which are one position in a text.

#include "core/base/words.h"
#include "core/model/families/qwen.h"
#include "core/model/families/text_half.h"

namespace headscope {

namespace {
void qwen3_vl_keys(ConfigMap& keys, ModelConfig& c) {
  qwen3_like(keys, c, {.base = 500000});
  keys.ends(c, false);
}
}  // namespace

Family qwen3_vl_family();  // declared with all others in family.cpp
Family qwen3_vl_family() {
  return text_half_family({.model_type = "qwen3_vl",
                           .architecture = "Qwen3VLForConditionalGeneration",
                           .summary = to_say("as qwen3: the half that reads text, pictures are not read"),
                           .types = {"qwen3_vl_text"},
                           .map = &qwen3_vl_keys,
                           .names = &usual_names});
}

}  // namespace headscope
