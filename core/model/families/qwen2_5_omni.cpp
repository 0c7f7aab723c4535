// Qwen2.5-Omni (Xu et al., Qwen2.5-Omni Technical Report, 2025), of whose thinker the half that reads text is read: its
// rotation knows time, height and width, which are one position in a text. What speaks is not read.

#include "core/base/words.h"
#include "core/model/families/qwen.h"
#include "core/model/families/qwen_omni.h"

namespace headscope {

namespace {
void qwen2_5_omni_keys(ConfigMap& keys, ModelConfig& c) {
  qwen2_like(keys, c, {.base = 1e6});
}
}  // namespace

Family qwen2_5_omni_half(std::string model_type, std::string architecture, std::string around) {
  return text_half_family({.model_type = std::move(model_type),
                           .architecture = std::move(architecture),
                           .summary = to_say("as qwen2: the half that reads text, pictures and sounds are not read"),
                           .types = {"qwen2_5_omni_text"},
                           .map = &qwen2_5_omni_keys,
                           .names = &usual_names,
                           .usual = {{"vocab_size", 152064},
                                     {"hidden_size", 3584},
                                     {"intermediate_size", 18944},
                                     {"num_hidden_layers", 28},
                                     {"num_attention_heads", 28},
                                     {"num_key_value_heads", 4},
                                     {"max_position_embeddings", 32768},
                                     {"sliding_window", 32768}},
                           .around = std::move(around)});
}

Family qwen2_5_omni_family();  // declared with all others in family.cpp
Family qwen2_5_omni_family() {
  return qwen2_5_omni_half("qwen2_5_omni", "Qwen2_5OmniForConditionalGeneration", "thinker_config");
}

}  // namespace headscope
