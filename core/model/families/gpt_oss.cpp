// GPT-OSS (OpenAI, gpt-oss-120b & gpt-oss-20b Model Card, 2025): every head has a learned logit in its softmax that
// takes weight and gives nothing; every second layer has a window; each token passes through a few of many MLPs, whose
// gates are cut off.

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void gpt_oss_keys(ConfigMap& keys, ModelConfig& c) {
  keys.extents(c, {});
  if (keys.reading() && !keys.json().has("head_dim")) c.dims.d_head = 64;
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-5);
  keys.rotary(c, 150000);
  keys.gated_mlp("hidden_act", c, "silu");
  keys.number("swiglu_alpha", c.gate_alpha, 0, 1e6, 1.702);
  keys.number("swiglu_limit", c.gate_limit, 1e-6, 1e6, 7.0);
  bool biased = c.bias.q;
  keys.flag("attention_bias", biased, true);
  c.bias = BiasSet::none();
  c.bias.q = c.bias.k = c.bias.v = c.bias.o = biased;
  c.bias.up = c.bias.down = true;
  c.learned_sinks = true;
  int window = 0;
  if (keys.reading() && !keys.json().null("sliding_window"))
    window = keys.json().integer("sliding_window", 0, config_limits::context, 128);
  keys.layer_types(c, window, [](int layer) { return layer % 2 == 0; });
  expert_keys(keys, c,
              {.count = "num_local_experts",
               .count_too = "num_experts",
               .width = "",
               .usual_count = 128,
               .usual_per_token = 4});
  if (keys.reading()) (void)keys.json().has("experts_per_token");  // num_experts_per_tok again, in published files
  c.experts.score = RouterScore::softmax_of_chosen;
  c.experts.router_bias = true;
  keys.ends(c, false);
}

WeightNames gpt_oss_names(const ModelConfig&) {
  WeightNames names;
  names.experts.router = "mlp.router";
  names.experts.gate_up_of_all = "mlp.experts.gate_up_proj";
  names.experts.down_of_all = "mlp.experts.down_proj";
  return names;
}
}  // namespace

Family gpt_oss_family();  // declared with all others in family.cpp
Family gpt_oss_family() {
  return usual_family("gpt_oss", "GptOssForCausalLM",
                      to_say("a learned sink in every softmax, windows, each token through a few of many MLPs"),
                      &gpt_oss_keys, &gpt_oss_names);
}

}  // namespace headscope
