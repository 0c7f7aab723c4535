// Qwen2-VL (Wang et al., Qwen2-VL: Enhancing Vision-Language Model's Perception of the World at Any Resolution, 2024),
// of which the half that reads text is read: its rotation knows time, height and width, which are one position in a
// text.

#include "core/base/words.h"
#include "core/model/families/qwen.h"
#include "core/model/families/text_half.h"

namespace headscope {

namespace {
void qwen2_vl_keys(ConfigMap& keys, ModelConfig& c) {
  qwen2_like(keys, c, {.epsilon = 1e-5, .base = 1e6, .windows_from = 80});
}
}  // namespace

Family qwen2_vl_family();  // declared with all others in family.cpp
Family qwen2_vl_family() {
  return text_half_family({.model_type = "qwen2_vl",
                           .architecture = "Qwen2VLForConditionalGeneration",
                           .summary = to_say("as qwen2: the half that reads text, pictures are not read"),
                           .types = {"qwen2_vl_text"},
                           .map = &qwen2_vl_keys,
                           .names = &usual_names,
                           .flat = true});
}

}  // namespace headscope
