// Qwen3-VL with experts (Qwen Team, 2025), of which the half that reads text is read; a file keeps all MLPs of a layer
// in one tensor.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/qwen.h"
#include "core/model/families/text_half.h"

namespace headscope {

namespace {
void qwen3_vl_moe_keys(ConfigMap& keys, ModelConfig& c) {
  qwen3_like(keys, c, {.base = 500000});
  expert_keys(keys, c, {.usual_count = 60, .usual_per_token = 4, .usual_width = 1408});
  c.experts.renormalized = true;
  sparse_layers(keys, c);
  keys.ends(c, true);
}

WeightNames qwen3_vl_moe_names(const ModelConfig&) {
  WeightNames names;
  names.experts.gate_up_of_all = "mlp.experts.gate_up_proj";
  names.experts.down_of_all = "mlp.experts.down_proj";
  names.experts.halves = true;
  return names;
}
}  // namespace

Family qwen3_vl_moe_family();  // declared with all others in family.cpp
Family qwen3_vl_moe_family() {
  return text_half_family({.model_type = "qwen3_vl_moe",
                           .architecture = "Qwen3VLMoeForConditionalGeneration",
                           .summary = to_say("as qwen3_moe: the half that reads text, pictures are not read"),
                           .types = {"qwen3_vl_moe_text"},
                           .map = &qwen3_vl_moe_keys,
                           .names = &qwen3_vl_moe_names});
}

}  // namespace headscope
