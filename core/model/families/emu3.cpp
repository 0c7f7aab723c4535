// Emu 3 (Wang et al., Emu3: Next-Token Prediction is All You Need, 2024), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family emu3_family();  // declared with all others in family.cpp
Family emu3_family() {
  return text_half_family({.model_type = "emu3",
                           .architecture = "Emu3ForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, pictures are not read"),
                           .types = {"emu3_text_model"},
                           .as = "llama",
                           .usual = {{"vocab_size", 184622},
                                     {"intermediate_size", 14336},
                                     {"num_key_value_heads", 8},
                                     {"max_position_embeddings", 9216},
                                     {"rms_norm_eps", 1e-5},
                                     {"rope_theta", 1e6}}});
}

}  // namespace headscope
