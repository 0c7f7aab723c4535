// Gemma 2 (Gemma Team, Gemma 2: Improving Open Language Models at a Practical Size, 2024): Gemma with norms before and
// behind each part, scores and logits bent by soft caps, and a sliding window in every second layer.

#include "core/base/words.h"
#include "core/model/families/gemma.h"

namespace headscope {

void gemma2_like(ConfigMap& keys, ModelConfig& c) {
  gemma_stream(keys, c);
  c.norm_place = NormPlace::both;
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_activation", c, "gelu_pytorch_tanh");
  keys.biases(c, "attention_bias");
  gemma_scores(keys, c, 50, 30);
  int window = 0;
  if (keys.reading()) window = keys.json().integer("sliding_window", 0, config_limits::context, 4096);
  keys.layer_types(c, window, [&](int layer) { return layer % 2 == 0; });
  keys.only("use_bidirectional_attention", false, "only decoders are read, which see no later token");
  keys.ends(c, true);
}

WeightNames gemma2_names(const ModelConfig&) {
  WeightNames names;
  names.ln1_post = "post_attention_layernorm";
  names.ln2 = "pre_feedforward_layernorm";
  names.ln2_post = "post_feedforward_layernorm";
  return names;
}

Family gemma2_family();  // declared with all others in family.cpp
Family gemma2_family() {
  return usual_family("gemma2", "Gemma2ForCausalLM",
                      to_say("norms before and behind, soft caps, every other layer with a window"), &gemma2_like,
                      &gemma2_names);
}

}  // namespace headscope
