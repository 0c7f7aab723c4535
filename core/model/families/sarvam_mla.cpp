// Sarvam with latents (Sarvam AI, Sarvam-105B, 2026): DeepSeek V3, whose queries are made of the stream, and whose
// experts make one group. Files in its makers' form call some keys otherwise, and YaRN "deepseek_yarn".

#include "core/base/words.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void sarvam_mla_keys(ConfigMap& keys, ModelConfig& c) {
  bool adjacent = c.rotary.layout == RotaryLayout::interleaved;
  keys.flag("rope_interleave", adjacent, true);
  c.rotary.layout = adjacent ? RotaryLayout::interleaved : RotaryLayout::half_split;
  DeepseekUsual usual{
      .dense_layers = 1, .experts = 128, .per_token = 8, .shared = 1, .width = 2048, .q_latent = 0, .scale = 2.5};
  usual.count_key = deepseek_either(keys, "n_routed_experts", "num_experts");
  usual.shared_key = deepseek_either(keys, "n_shared_experts", "num_shared_experts");
  if (keys.reading())
    for (const char* of_count : {"num_experts", "num_local_experts"}) (void)keys.json().has(of_count);
  deepseek_keys(keys, c, usual);
  if (c.experts.anywhere()) deepseek_router(keys, c.experts, 1, 1, true);
}
}  // namespace

Family sarvam_mla_family();  // declared with all others in family.cpp
Family sarvam_mla_family() {
  return usual_family("sarvam_mla", "DeepseekV3ForCausalLM", to_say("as deepseek_v3, queries of the stream"),
                      &sarvam_mla_keys, &deepseek_names);
}

}  // namespace headscope
