// Aria (Li et al., Aria: An Open Multimodal Native Mixture-of-Experts Model, 2024), of which the half that reads text
// is read: as Llama, in every layer each token through a few of many MLPs, and through some that take all.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/text_half.h"

namespace headscope {

namespace {
void aria_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  if (keys.reading() && c.activation != Activation::silu)
    throw keys.json().error("hidden_act", "silu", activation_name(c.activation),
                            "the experts of this family know no other, as in the library");
  keys.biases(c, "attention_bias");
  keys.only("mlp_bias", false, "biases of the MLP that takes every token are not read");
  ExpertConfig& e = c.experts;
  expert_keys(keys, c,
              {.count = "moe_num_experts",
               .count_too = "",
               .per_token = "moe_topk",
               .width = "",
               .usual_count = 8,
               .usual_per_token = 2});
  int shared = e.width > 0 ? e.shared_width / e.width : 0;
  keys.integer("moe_num_shared_experts", shared, 1, 1 << 10, 2);
  e.shared_width = shared * e.width;
  e.score = RouterScore::softmax_of_chosen;
  keys.ends(c, false);
}

WeightNames aria_names(const ModelConfig&) {
  WeightNames names;
  names.experts.router = "mlp.router";
  names.experts.gate_up_of_all = "mlp.experts.gate_up_proj";
  names.experts.down_of_all = "mlp.experts.down_proj";
  names.experts.halves = true;
  return names;
}

/// As published.
WeightNames aria_older_names(const ModelConfig& c) {
  WeightNames names = aria_names(c);
  names.experts.gate_up_of_all = "mlp.experts.fc1.weight";
  names.experts.down_of_all = "mlp.experts.fc2.weight";
  return names;
}
}  // namespace

Family aria_family();  // declared with all others in family.cpp
Family aria_family() {
  return text_half_family(
      {.model_type = "aria",
       .architecture = "AriaForConditionalGeneration",
       .summary =
           to_say("as llama, each token through a few of many MLPs: the half that reads text, pictures are not read"),
       .types = {"aria_text"},
       .map = &aria_keys,
       .names = &aria_names,
       .older_names = &aria_older_names,
       .older = "model.layers.0.mlp.experts.fc1.weight",
       .newer = "model.layers.0.mlp.experts.gate_up_proj",
       .usual = {{"vocab_size", 32000},
                 {"hidden_size", 4096},
                 {"intermediate_size", 4096},
                 {"num_hidden_layers", 32},
                 {"num_attention_heads", 32},
                 {"max_position_embeddings", 2048}}});
}

}  // namespace headscope
