// Solar Open (Upstage, Solar Open Technical Report, 2026): as Llama, experts as in DeepSeek V3 in every layer.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void solar_open_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {.mlp = ""});
  ExpertConfig& e = c.experts;
  expert_keys(keys, c,
              {.count = "n_routed_experts",
               .count_too = "num_local_experts",
               .usual_count = 128,
               .usual_per_token = 8,
               .usual_width = 1280});
  c.dims.d_mlp = e.width;
  int shared = keys.reading() ? 0 : e.shared_width / e.width;
  keys.integer("n_shared_experts", shared, 0, 64, 1);
  e.shared_width = shared * e.width;
  keys.number("routed_scaling_factor", e.scale, 1e-6, 1e6, 1);
  deepseek_router(keys, e, 1, 1, true);
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 1e6);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.biases(c, "attention_bias");
  c.bias.o = false;
  keys.ends(c, false);
}
}  // namespace

Family solar_open_family();  // declared with all others in family.cpp
Family solar_open_family() {
  return usual_family("solar_open", "SolarOpenForCausalLM", to_say("as llama, each token through a few of many MLPs"),
                      &solar_open_keys, &usual_names);
}

}  // namespace headscope
