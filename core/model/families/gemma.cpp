// Gemma (Gemma Team, Gemma: Open Models Based on Gemini Research and Technology, 2024): as Llama, with norms whose
// stored gains are added to 1, embeddings multiplied by √d_model, and a gated GELU.

#include <cmath>

#include "core/model/families/usual.h"

namespace headscope {

namespace {
void gemma_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim")) c.dims.d_head = 256;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.norm_gain_plus_one = true;
  c.embedding_scale = std::sqrt(static_cast<double>(c.dims.d_model));
  keys.rotary(c, 10000);
  // Older files say "gelu" and mean its approximation; a later key says so.
  const bool later = keys.reading() && keys.json().has("hidden_activation");
  keys.activation(later ? "hidden_activation" : "hidden_act", c.activation, "gelu_pytorch_tanh");
  if (c.activation == Activation::gelu) c.activation = Activation::gelu_tanh;
  c.gated_mlp = true;
  bool biased = c.bias.q;
  keys.flag("attention_bias", biased, false);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = biased;
  keys.only("use_bidirectional_attention", false, "only decoders are read, which see no later token");
  keys.ends(c, true);
}

WeightNames gemma_names(const ModelConfig&) {
  WeightNames names;
  return names;
}
}  // namespace

Family gemma_family();  // declared with all others in family.cpp
Family gemma_family() {
  return usual_family("gemma", "GemmaForCausalLM", "as llama, gains added to 1, embedding times √d_model, gated GELU",
                      &gemma_keys, &gemma_names);
}

}  // namespace headscope
