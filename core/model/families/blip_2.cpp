// BLIP-2 (Li et al., BLIP-2: Bootstrapping Language-Image Pre-training with Frozen Image Encoders and Large Language
// Models, 2023), of which the half that reads text is read. It was trained behind what a picture gives it; a text alone
// goes to that half, as the library's whole asks for a picture.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family blip_2_family();  // declared with all others in family.cpp
Family blip_2_family() {
  return text_half_family({.model_type = "blip-2",
                           .architecture = "Blip2ForConditionalGeneration",
                           .summary = to_say("as opt: the half that reads text, pictures are not read"),
                           .types = {"opt"},
                           .usual = {{"vocab_size", 50272},
                                     {"hidden_size", 768},
                                     {"ffn_dim", 3072},
                                     {"num_hidden_layers", 12},
                                     {"num_attention_heads", 12},
                                     {"max_position_embeddings", 2048}}});
}

}  // namespace headscope
