// Gemma 3, text (Gemma Team, Gemma 3 Technical Report, 2025): Gemma 2 with an RMSNorm on queries and keys in place of
// soft caps, five layers in six with a window and a rotary base of their own.

#include "core/base/words.h"
#include "core/model/families/gemma.h"

namespace headscope {

void gemma3_text_keys(ConfigMap& keys, ModelConfig& c) {
  gemma_stream(keys, c);
  c.norm_place = NormPlace::both;
  c.qk_norm = QkNorm::per_head;
  keys.gated_mlp("hidden_activation", c, "gelu_pytorch_tanh");
  keys.biases(c, "attention_bias");
  gemma_scores(keys, c, 0, 0);
  keys.windows_every(c, 4096, 6);
  keys.rotary_by_window(c, 1e6, 1e4, "rope_local_base_freq");
  keys.only("use_bidirectional_attention", false, "only decoders are read, which see no later token");
  keys.ends(c, true);
}

Family gemma3_text_family();  // declared with all others in family.cpp
Family gemma3_text_family() {
  return usual_family("gemma3_text", "Gemma3ForCausalLM",
                      to_say("norms before and behind and on queries and keys, five layers in six with a window"),
                      &gemma3_text_keys, &gemma2_names);
}

}  // namespace headscope
