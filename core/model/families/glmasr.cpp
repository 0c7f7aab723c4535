// GLM-ASR (Zhipu AI, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family glmasr_family();  // declared with all others in family.cpp
Family glmasr_family() {
  return text_half_family({.model_type = "glmasr",
                           .architecture = "GlmAsrForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, sounds are not read"),
                           .types = {"llama"},
                           // As transformers has it where the file leaves them out.
                           .usual = {{"vocab_size", 59264},
                                     {"hidden_size", 2048},
                                     {"intermediate_size", 6144},
                                     {"num_hidden_layers", 28},
                                     {"num_attention_heads", 16},
                                     {"num_key_value_heads", 4},
                                     {"max_position_embeddings", 8192},
                                     {"rms_norm_eps", 1e-5}},
                           .tied = true});
}

}  // namespace headscope
