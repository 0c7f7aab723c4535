// Granite 3.0 MoE (Granite Team, Granite 3.0 Language Models, 2024): Granite, each token through a few of many MLPs, of
// which a file keeps all in one tensor.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/granite.h"

namespace headscope {

void granitemoe_keys(ConfigMap& keys, ModelConfig& c) {
  granite_stream(keys, c);
  keys.biases(c, "attention_bias");
  expert_keys(
      keys, c,
      {.count = "num_local_experts", .count_too = "num_experts", .width = "", .usual_count = 8, .usual_per_token = 2});
  c.experts.score = RouterScore::softmax_of_chosen;
}

WeightNames granitemoe_names(const ModelConfig&) {
  WeightNames names;
  names.experts.router = "block_sparse_moe.router.layer";
  names.experts.expert = "block_sparse_moe.experts.";
  names.experts.gate_up_of_all = "block_sparse_moe.input_linear.weight";
  names.experts.down_of_all = "block_sparse_moe.output_linear.weight";
  names.experts.rows = true;
  return names;
}

Family granitemoe_family();  // declared with all others in family.cpp
Family granitemoe_family() {
  return usual_family("granitemoe", "GraniteMoeForCausalLM",
                      to_say("as granite, each token through a few of many MLPs"), &granitemoe_keys, &granitemoe_names);
}

}  // namespace headscope
