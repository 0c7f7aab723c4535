// Granite-Docling (IBM, 2026), of which the half that reads text is read.

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

Family granite_docling_family();  // declared with all others in family.cpp
Family granite_docling_family() {
  return text_half_family({.model_type = "granite_docling",
                           .architecture = "GraniteDoclingForConditionalGeneration",
                           .summary = to_say("as granite: the half that reads text, pictures are not read"),
                           .types = {"granite_docling_text"},
                           .as = "granite",
                           .usual = {{"vocab_size", 133800},
                                     {"hidden_size", 1024},
                                     {"intermediate_size", 2048},
                                     {"num_hidden_layers", 28},
                                     {"num_attention_heads", 16},
                                     {"num_key_value_heads", 4},
                                     {"max_position_embeddings", 32768},
                                     {"rms_norm_eps", 1e-5},
                                     {"embedding_multiplier", 12},
                                     {"logits_scaling", 4},
                                     {"residual_multiplier", 0.263},
                                     {"attention_multiplier", 0.015625}},
                           .tied = true});
}

}  // namespace headscope
