// Llama 4 as it is published (Meta, The Llama 4 Herd, 2025), of which the half that reads text is read.

#include "core/model/families/llama4.h"

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family llama4_family();  // declared with all others in family.cpp
Family llama4_family() {
  return text_half_family({.model_type = "llama4",
                           .architecture = "Llama4ForConditionalGeneration",
                           .summary = to_say("as llama4_text: the half that reads text, pictures are not read"),
                           .types = {"llama4_text"},
                           .map = &llama4_text_keys,
                           .names = &llama4_names,
                           .usual = {{"vocab_size", 202048},
                                     {"hidden_size", 5120},
                                     {"intermediate_size_mlp", 16384},
                                     {"num_hidden_layers", 48},
                                     {"num_attention_heads", 40},
                                     {"num_key_value_heads", 8},
                                     {"head_dim", 128},
                                     {"max_position_embeddings", 131072}}});
}

}  // namespace headscope
