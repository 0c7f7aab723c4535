// EXAONE 3 and 3.5 (LG AI Research, EXAONE 3.5: Series of Large Language Models for Real-world Use Cases, 2024): a
// Llama under other names.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void exaone_keys(ConfigMap& keys, ModelConfig& c) {
  // What the library writes today, or else what published files say.
  const auto either = [&](const char* today, const char* published) {
    return keys.reading() && !keys.json().has(today) ? published : today;
  };
  keys.extents(c, {.layers = either("num_hidden_layers", "num_layers")});
  keys.norm(c, NormKind::rms_norm, either("rms_norm_eps", "layer_norm_epsilon"), 1e-5);
  keys.rotary(c, 500000);
  keys.gated_mlp(either("hidden_act", "activation_function"), c, "silu");
  keys.biases(c, "attention_bias", "mlp_bias");
  keys.ends(c, false);
}

WeightNames exaone_names(const ModelConfig&) {
  WeightNames names;
  names.prefixes = {"transformer.", ""};
  names.embedding = "wte";
  names.block = "h.";
  names.ln1 = "ln_1";
  names.ln2 = "ln_2";
  names.q = "attn.attention.q_proj";
  names.k = "attn.attention.k_proj";
  names.v = "attn.attention.v_proj";
  names.o = "attn.attention.out_proj";
  names.gate = "mlp.c_fc_0";
  names.up = "mlp.c_fc_1";
  names.down = "mlp.c_proj";
  names.final_norm = "ln_f";
  names.ignored = {"attn.attention.rotary.inv_freq"};
  return names;
}
}  // namespace

Family exaone_family();  // declared with all others in family.cpp
Family exaone_family() {
  return usual_family("exaone", "ExaoneForCausalLM", to_say("as llama, under other names"), &exaone_keys,
                      &exaone_names);
}

}  // namespace headscope
