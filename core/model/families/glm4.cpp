// GLM-4-0414 (Team GLM, 2025): GLM-4 with norms before and behind attention and MLP.

#include "core/base/words.h"
#include "core/model/families/glm.h"

namespace headscope {

namespace {
void glm4_keys(ConfigMap& keys, ModelConfig& c) {
  glm_keys(keys, c);
  c.norm_place = NormPlace::both;
}
}  // namespace

WeightNames glm4_names(const ModelConfig& c) {
  WeightNames names = glm_names(c);
  names.ln1_post = "post_self_attn_layernorm";
  names.ln2_post = "post_mlp_layernorm";
  return names;
}

Family glm4_family();  // declared with all others in family.cpp
Family glm4_family() {
  return usual_family("glm4", "Glm4ForCausalLM", to_say("as glm, norms before and behind attention and MLP"),
                      &glm4_keys, &glm4_names);
}

}  // namespace headscope
