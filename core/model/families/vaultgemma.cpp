// VaultGemma (Google, VaultGemma: A Differentially Private Gemma Model, 2025): Gemma 2 without norms behind its parts.

#include "core/base/words.h"
#include "core/model/families/gemma.h"

namespace headscope {

namespace {
void vaultgemma_keys(ConfigMap& keys, ModelConfig& c) {
  gemma2_like(keys, c);
  c.norm_place = NormPlace::before;
}

WeightNames vaultgemma_names(const ModelConfig&) {
  WeightNames names;
  names.ln2 = "pre_feedforward_layernorm";
  return names;
}
}  // namespace

Family vaultgemma_family();  // declared with all others in family.cpp
Family vaultgemma_family() {
  return usual_family("vaultgemma", "VaultGemmaForCausalLM", to_say("as gemma2, norms before alone"), &vaultgemma_keys,
                      &vaultgemma_names);
}

}  // namespace headscope
