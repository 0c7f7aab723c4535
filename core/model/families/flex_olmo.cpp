// FlexOlmo (Shi et al., FlexOlmo: Open Language Models for Flexible Data Use, 2025): as OLMo 2, with several MLPs in
// every layer, each trained on data of its own, of which each token passes through a few.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/olmo2.h"

namespace headscope {

namespace {
void flex_olmo_keys(ConfigMap& keys, ModelConfig& c) {
  olmo2_like(keys, c);
  keys.rotary(c, 500000);
  expert_keys(keys, c, {.width = "", .usual_count = 7, .usual_per_token = 5});
  keys.flag("norm_topk_prob", c.experts.renormalized, false);
  keys.ends(c, false);
}
}  // namespace

Family flex_olmo_family();  // declared with all others in family.cpp
Family flex_olmo_family() {
  return usual_family("flex_olmo", "FlexOlmoForCausalLM", to_say("as olmo2, each token through a few of several MLPs"),
                      &flex_olmo_keys, &olmo2_names);
}

}  // namespace headscope
