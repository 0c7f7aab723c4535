// DeepSeek V2 (DeepSeek-AI, DeepSeek-V2, 2024): as Llama, but keys and values of all heads are made of one latent per
// token, and positions turn a part of queries and keys that is apart; behind the first layers each token passes through
// a few of many MLPs, chosen among all or among those of the groups with the best ones.

#include "core/base/words.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
void deepseek_v2_keys(ConfigMap& keys, ModelConfig& c) {
  if (keys.reading()) c.rotary.layout = RotaryLayout::interleaved;
  bool biased = c.bias.up;
  deepseek_keys(keys, c, {.experts = 64, .shared = 2, .width = 1407});
  keys.flag("mlp_bias", biased, false);
  c.bias.up = c.bias.down = biased;
  ExpertConfig& e = c.experts;
  if (!e.anywhere()) return;
  e.own_bias = false;
  e.group_best = 1;
  std::string method = e.groups > 1 ? "group_limited_greedy" : "greedy";
  keys.text("topk_method", method, "greedy");
  if (!keys.reading()
          ? e.groups > 1
          : keys.json().choice<bool>("topk_method", method, {{"greedy", false}, {"group_limited_greedy", true}}))
    deepseek_groups(keys, e);
  deepseek_only(keys, "scoring_func", "softmax");
  // The library multiplies the weights by routed_scaling_factor, whatever this says; DeepSeek's own code divides them
  // by their sum in place of that.
  keys.only("norm_topk_prob", false, "of which Transformers and DeepSeek's own code make different numbers");
}
}  // namespace

Family deepseek_v2_family();  // declared with all others in family.cpp
Family deepseek_v2_family() {
  return usual_family(
      "deepseek_v2", "DeepseekV2ForCausalLM",
      to_say("keys and values of a latent, positions on a part of each head, each token through a few of many MLPs"),
      &deepseek_v2_keys, &deepseek_names);
}

}  // namespace headscope
