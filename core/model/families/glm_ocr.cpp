// GLM-OCR (GLM-V Team, 2026), of which the half that reads text is read, as of GLM-4.1V; no biases. A file holds a
// layer behind the last that predicts a token further on.

#include "core/base/words.h"
#include "core/model/families/glm.h"
#include "core/model/families/text_half.h"

namespace headscope {

namespace {
void glm_ocr_keys(ConfigMap& keys, ModelConfig& c) {
  glm4v_text_keys(keys, c);
  c.bias = BiasSet::none();
}

WeightNames glm_ocr_names(const ModelConfig& c) {
  WeightNames names = glm4_names(c);
  names.layers_behind = true;
  return names;
}
}  // namespace

Family glm_ocr_family();  // declared with all others in family.cpp
Family glm_ocr_family() {
  return text_half_family({.model_type = "glm_ocr",
                           .architecture = "GlmOcrForConditionalGeneration",
                           .summary = to_say("as glm4: the half that reads text, pictures are not read"),
                           .types = {"glm_ocr_text"},
                           .map = &glm_ocr_keys,
                           .names = &glm_ocr_names});
}

}  // namespace headscope
