// Apertus (Project Apertus, Apertus: Democratizing Open and Compliant LLMs for Global Language Environments, 2025): as
// Qwen 3, with an MLP that has no gate and an activation function, xIELU, whose bends each layer learnt.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void apertus_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  c.qk_norm = QkNorm::per_head;
  keys.rotary(c, 12000000);
  if (keys.reading() && !keys.json().has("rope_parameters") && !keys.json().has("rope_scaling")) {
    c.rotary.scaling = RotaryConfig::Scaling::llama3;
    c.rotary.factor = 8;
    c.rotary.low_frequency_factor = 1;
    c.rotary.high_frequency_factor = 4;
    c.rotary.original_context = 8192;
  }
  if (keys.reading() && keys.json().text("hidden_act", "xielu") == "xielu")
    c.activation = Activation::xielu;
  else
    keys.activation("hidden_act", c.activation, "xielu");
  keys.biases(c, "attention_bias");
  keys.ends(c, false);
}

WeightNames apertus_names(const ModelConfig&) {
  WeightNames names;
  names.ln1 = "attention_layernorm";
  names.ln2 = "feedforward_layernorm";
  return names;
}
}  // namespace

Family apertus_family();  // declared with all others in family.cpp
Family apertus_family() {
  return usual_family("apertus", "ApertusForCausalLM",
                      to_say("as qwen3, an MLP without a gate, xIELU with learned bends"), &apertus_keys,
                      &apertus_names);
}

}  // namespace headscope
