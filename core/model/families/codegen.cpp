// CodeGen (Nijkamp et al., CodeGen, 2022): as GPT-J, with queries, values and keys stored in four chunks, one for each
// of the machines that it was trained on.

#include "core/base/words.h"
#include "core/model/families/gptj.h"

namespace headscope {

namespace {
void codegen_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading() && keys.json().integer("n_head", 1, config_limits::heads) % 4 != 0)
    throw keys.json().error("n_head", "a multiple of 4, in which queries, values and keys are stored",
                            std::to_string(keys.json().integer("n_head", 1, config_limits::heads)));
  gptj_keys(keys, c);
}

WeightNames codegen_names(const ModelConfig& c) {
  WeightNames names = gptj_names(c);
  names.qkv = "attn.qkv_proj";
  names.fused = FusedQkv::four_chunks;
  return names;
}
}  // namespace

Family codegen_family();  // declared with all others in family.cpp
Family codegen_family() {
  return usual_family("codegen", "CodeGenForCausalLM", to_say("as gptj, queries, values and keys in four chunks"),
                      &codegen_keys, &codegen_names);
}

}  // namespace headscope
