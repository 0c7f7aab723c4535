// Mistral Small 4 (Mistral AI, 2026): attention of latents as in DeepSeek V3, with queries that grow along the text as
// Ministral 3's do, whole and not what turns of them alone; experts chosen by a softmax, one for all tokens beside
// them.

#include "core/base/words.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void mistral4_extents(ConfigMap& keys, ModelConfig& c) {
  const DeepseekUsual usual{
      .experts = 128, .per_token = 4, .shared = 1, .width = 2048, .q_latent = 1024, .share_of_head = true};
  if (!keys.reading()) return deepseek_keys(keys, c, usual);
  const ConfigReader filled =
      keys.json().with_defaults({{"qk_nope_head_dim", 64}, {"qk_rope_head_dim", 64}, {"kv_lora_rank", 256}});
  ConfigMap own(filled);
  deepseek_keys(own, c, usual);
}

void mistral4_keys(ConfigMap& keys, ModelConfig& c) {
  bool adjacent = c.rotary.layout == RotaryLayout::interleaved;
  keys.flag("rope_interleave", adjacent, true);
  c.rotary.layout = adjacent ? RotaryLayout::interleaved : RotaryLayout::half_split;
  mistral4_extents(keys, c);
  if (keys.reading() && !adjacent && c.rotary.query_growth > 0)
    throw keys.json().error("rope_interleave", "true, where queries grow (llama_4_scaling_beta)", "false");
  if (keys.reading() && c.rotary.scaling == RotaryConfig::Scaling::none)
    throw keys.json().error("rope_parameters", "yarn, or another rotation with a share of the head that turns",
                            "the default one, which transformers makes for whole heads and cannot use");
  if (!c.experts.anywhere()) return;
  deepseek_groups(keys, c.experts, 1, 1);
  keys.flag("norm_topk_prob", c.experts.renormalized, true);
}

WeightNames mistral4_names(const ModelConfig&) {
  WeightNames names;
  names.layers_behind = true;
  // As the library reads and writes them.
  names.experts.gate_up_of_all = "mlp.experts.gate_up_proj", names.experts.down_of_all = "mlp.experts.down_proj";
  names.experts.rows = true;
  return names;
}
}  // namespace

Family mistral4_family();  // declared with all others in family.cpp
Family mistral4_family() {
  return usual_family("mistral4", "Mistral4ForCausalLM",
                      to_say("as deepseek_v3, queries that grow along the text, experts chosen by a softmax"),
                      &mistral4_keys, &mistral4_names);
}

}  // namespace headscope
