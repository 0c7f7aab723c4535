// Gemma (Gemma Team, Gemma: Open Models Based on Gemini Research and Technology, 2024): as Llama, with norms whose
// stored gains are added to 1, embeddings multiplied by √d_model, and a gated GELU.

#include "core/model/families/gemma.h"

#include <cmath>

#include "core/base/words.h"

namespace headscope {

void gemma_stream(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim")) c.dims.d_head = 256;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.norm_gain_plus_one = true;
  c.embedding_scale = std::sqrt(static_cast<double>(c.dims.d_model));
}

void gemma_scores(ConfigMap& keys, ModelConfig& c, double score_cap, double logit_cap) {
  double scalar = c.score_scale ? 1 / (*c.score_scale * *c.score_scale) : 256;
  keys.number("query_pre_attn_scalar", scalar, 1e-6, 1e9, 256);
  c.score_scale = 1 / std::sqrt(scalar);
  keys.cap("attn_logit_softcapping", c.score_cap, score_cap);
  keys.cap("final_logit_softcapping", c.logit_cap, logit_cap);
}

namespace {
void gemma_keys(ConfigMap& keys, ModelConfig& c) {
  gemma_stream(keys, c);
  keys.rotary(c, 10000);
  // Older files say "gelu" and mean its approximation; a later key says so.
  const bool later = keys.reading() && keys.json().has("hidden_activation");
  keys.activation(later ? "hidden_activation" : "hidden_act", c.activation, "gelu_pytorch_tanh");
  if (c.activation == Activation::gelu) c.activation = Activation::gelu_tanh;
  c.gated_mlp = true;
  keys.biases(c, "attention_bias");
  keys.only("use_bidirectional_attention", false, "only decoders are read, which see no later token");
  keys.ends(c, true);
}
}  // namespace

Family gemma_family();  // declared with all others in family.cpp
Family gemma_family() {
  return usual_family("gemma", "GemmaForCausalLM",
                      to_say("as llama, gains added to 1, embedding times √d_model, gated GELU"), &gemma_keys,
                      &usual_names);
}

}  // namespace headscope
