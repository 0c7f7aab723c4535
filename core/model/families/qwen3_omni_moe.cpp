// Qwen3-Omni (Xu et al., Qwen3-Omni Technical Report, 2025), of whose thinker the half that reads text is read: its
// rotation knows time, height and width, which are one position in a text. What speaks is not read.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/qwen_omni.h"

namespace headscope {

namespace {
void qwen3_omni_moe_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  c.qk_norm = QkNorm::per_head;
  keys.rotary(c, 1e6);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  keys.only("use_sliding_window", false, "the library does not know it in this family");
  if (keys.reading()) (void)keys.json().has("sliding_window");  // of a model without windows
  expert_keys(keys, c, {.usual_count = 128, .usual_per_token = 8, .usual_width = 768});
  keys.flag("norm_topk_prob", c.experts.renormalized, true);
  sparse_layers(keys, c);
  keys.ends(c, false);
}
}  // namespace

Family qwen3_omni_half(std::string model_type, std::string architecture, std::string around) {
  return text_half_family(
      {.model_type = std::move(model_type),
       .architecture = std::move(architecture),
       .summary = to_say("as qwen3_moe: the half that reads text, pictures and sounds are not read"),
       .types = {"qwen3_omni_moe_text"},
       .map = &qwen3_omni_moe_keys,
       .names = &usual_names,
       .usual = {{"vocab_size", 3584},
                 {"hidden_size", 2048},
                 {"intermediate_size", 18944},
                 {"num_hidden_layers", 28},
                 {"num_attention_heads", 28},
                 {"num_key_value_heads", 4},
                 {"max_position_embeddings", 32768}},
       .around = std::move(around)});
}

Family qwen3_omni_moe_family();  // declared with all others in family.cpp
Family qwen3_omni_moe_family() {
  return qwen3_omni_half("qwen3_omni_moe", "Qwen3OmniMoeForConditionalGeneration", "thinker_config");
}

}  // namespace headscope
