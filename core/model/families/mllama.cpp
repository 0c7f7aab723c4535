// Llama 3.2 Vision (Grattafiori et al., The Llama 3 Herd of Models, 2024), of which the half that reads text is read:
// layers that look at a picture are passed by where there is none, as in transformers, and what is left is Llama 3.1.
// Rows of the embedding behind the vocabulary are tokens of pictures, which no text has.

#include <algorithm>

#include "core/base/words.h"
#include "core/model/families/text_half.h"

namespace headscope {

namespace {
void mllama_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.d_head = ""});
  if (!keys.reading()) {
    keys.put("cross_attention_layers", std::vector<int>{});
  } else {
    const std::vector<int> usual{3, 8, 13, 18, 23, 28, 33, 38};
    std::vector<int> cross = keys.json().integers("cross_attention_layers", 0, config_limits::layers).value_or(usual);
    std::erase_if(cross, [&](int layer) { return layer >= c.dims.layers; });
    std::ranges::sort(cross);
    cross.erase(std::ranges::unique(cross).begin(), cross.end());
    c.dims.layers -= static_cast<int>(cross.size());
    if (c.dims.layers < 1)
      throw keys.json().error("cross_attention_layers", "layers that leave one to texts",
                              std::to_string(cross.size()) + ", all that there are");
  }
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 500000);
  keys.gated_mlp("hidden_act", c, "silu");
  c.bias = BiasSet::none();
  keys.ends(c, false);
}
}  // namespace

Family mllama_family();  // declared with all others in family.cpp
Family mllama_family() {
  return text_half_family({.model_type = "mllama",
                           .architecture = "MllamaForConditionalGeneration",
                           .summary = to_say("as llama: the half that reads text, pictures are not read"),
                           .types = {"mllama_text_model"},
                           .map = &mllama_keys,
                           .names = &usual_names,
                           .usual = {{"vocab_size", 128256},
                                     {"hidden_size", 4096},
                                     {"intermediate_size", 14336},
                                     {"num_hidden_layers", 40},
                                     {"num_attention_heads", 32},
                                     {"num_key_value_heads", 8},
                                     {"max_position_embeddings", 131072}},
                           .more_tokens = 8,
                           .left_out = ".cross_attn"});
}

}  // namespace headscope
