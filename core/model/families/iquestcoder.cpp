// IQuest-Coder (IQuest Research, IQuest-Coder-V1 Technical Report, 2026): Llama, with heads of a width of their own.

#include "core/base/words.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void iquestcoder_keys(ConfigMap& keys, ModelConfig& c) {
  extents_of_width(keys, c, 128, {.usual_kv_heads = 8});
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 10000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias", "mlp_bias");
  keys.only("use_sliding_window", false, "as in the library, no window is read in this family");
  keys.ends(c, false);
}
}  // namespace

Family iquestcoder_family();  // declared with all others in family.cpp
Family iquestcoder_family() {
  return usual_family("iquestcoder", "IQuestCoderForCausalLM", to_say("as llama, heads of a width of their own"),
                      &iquestcoder_keys, &usual_names);
}

}  // namespace headscope
