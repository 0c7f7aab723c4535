// nanochat (Karpathy, nanochat: The best ChatGPT that $100 can buy, 2025): norms without weights, one of them behind
// the embedding, squared ReLU, a soft cap of logits. Pairs turn the other way, which is the usual way with the two
// numbers of each exchanged; queries and keys are normalised behind it, which without gains is the same as before it.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void nanochat_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.norm_weights = false;
  c.embedding_norm = true;
  c.qk_norm = QkNorm::per_head;
  keys.rotary(c, 10000);
  if (keys.reading() && c.rotary.width > 0)
    throw keys.json().error("partial_rotary_factor", "1", std::to_string(c.rotary.width),
                            "a nanochat turns whole heads");
  keys.activation("hidden_act", c.activation, "relu2");
  keys.biases(c, "attention_bias");
  keys.cap("final_logit_softcapping", c.logit_cap, 15);
  keys.ends(c, false);
}

WeightNames nanochat_names(const ModelConfig&) {
  WeightNames names;
  names.swapped_halves = true;
  names.up = "mlp.fc1";
  names.down = "mlp.fc2";
  return names;
}
}  // namespace

Family nanochat_family();  // declared with all others in family.cpp
Family nanochat_family() {
  return usual_family("nanochat", "NanoChatForCausalLM",
                      to_say("norms without weights, squared ReLU, queries and keys normalised, capped logits"),
                      &nanochat_keys, &nanochat_names);
}

}  // namespace headscope
