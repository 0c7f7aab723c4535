// Gemma 3 of 4B and more (Gemma Team, Gemma 3 Technical Report, 2025), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/gemma.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family gemma3_family();  // declared with all others in family.cpp
Family gemma3_family() {
  return text_half_family({.model_type = "gemma3",
                           .architecture = "Gemma3ForConditionalGeneration",
                           .summary = to_say("as gemma3_text: the half that reads text, pictures are not read"),
                           .types = {"gemma3_text"},
                           .map = &gemma3_text_keys,
                           .names = &gemma2_names,
                           // Files of 4B leave out what they have as everybody has it.
                           .usual = {{"vocab_size", 262208},
                                     {"hidden_size", 2304},
                                     {"intermediate_size", 9216},
                                     {"num_hidden_layers", 26},
                                     {"num_attention_heads", 8},
                                     {"num_key_value_heads", 4},
                                     {"head_dim", 256},
                                     {"max_position_embeddings", 131072}}});
}

}  // namespace headscope
