// HunYuan with experts (Tencent, Hunyuan-A13B Technical Report, 2025): as HunYuan dense, in every layer each token
// through a few of many MLPs, and through one more, all of them equally wide.

#include <fmt/format.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/model/families/hunyuan.h"

namespace headscope {

namespace {
/// A whole number, or one for each layer, all alike; what the library reads of the list is `where` they differ.
void one_for_all(ConfigMap& keys, const std::string& key, int& value, int high, std::optional<int> usual,
                 const char* hint) {
  if (!keys.reading() || !keys.json().is_list(key)) return keys.integer(key, value, 1, high, usual);
  const std::vector<int> each = *keys.json().integers(key, 1, high);
  if (each.empty() || std::ranges::count(each, each.front()) != std::ssize(each))
    throw keys.json().error(key, "the same number for every layer",
                            each.empty() ? "none" : fmt::format("{} and others", each.front()), hint);
  value = each.front();
}

void hunyuan_v1_moe_keys(ConfigMap& keys, ModelConfig& c) {
  hunyuan_keys(keys, c);
  ExpertConfig& e = c.experts;
  one_for_all(keys, "num_experts", e.count, 4096, 1, "layers with different numbers of experts are not read");
  one_for_all(keys, "moe_topk", e.per_token, 4096, 1,
              "layers where tokens pass through different numbers are not read");
  if (keys.reading() && e.per_token > e.count)
    throw keys.json().error("moe_topk", fmt::format("at most the {} experts", e.count), std::to_string(e.per_token));
  e.width = e.shared_width = c.dims.d_mlp;
  e.renormalized = true;
  if (!keys.reading()) return;
  c.dims.experts = e.count;
  const auto same = [&](const std::string& key, int value, const char* hint) {
    int found = value;
    one_for_all(keys, key, found, config_limits::d_mlp, value, hint);
    if (found != value) throw keys.json().error(key, std::to_string(value), std::to_string(found), hint);
  };
  same("moe_intermediate_size", c.dims.d_mlp, "experts are as wide as intermediate_size says, as in the library");
  same("num_shared_expert", 1, "one expert takes every token, as in the library");
  for (const char* key : {"use_cla", "use_mla", "group_limited_greedy", "mlp_bias"})
    keys.only(key, false, "the library does not know it in this family");
  for (const char* key : {"norm_topk_prob", "use_mixed_mlp_moe"})
    keys.only(key, true, "the library does so whatever this says");
  if (const double scale = keys.json().number("routed_scaling_factor", 0, 1e6, 1); scale != 1)
    throw keys.json().error("routed_scaling_factor", "1", fmt::format("{}", scale),
                            "the library does not know it in this family");
  if (const int skipped = keys.json().integer("moe_layer_num_skipped", 0, config_limits::layers, 0); skipped != 0)
    throw keys.json().error("moe_layer_num_skipped", "0: every layer has experts, as in the library",
                            std::to_string(skipped));
}

WeightNames hunyuan_v1_moe_names(const ModelConfig& c) {
  WeightNames names = hunyuan_names(c);
  names.experts.router = "mlp.gate.wg";
  names.experts.shared = "mlp.shared_mlp.";
  names.experts.gate_up_of_all = "mlp.experts.gate_up_proj";
  names.experts.down_of_all = "mlp.experts.down_proj";
  names.experts.rows = true;
  return names;
}
}  // namespace

Family hunyuan_v1_moe_family();  // declared with all others in family.cpp
Family hunyuan_v1_moe_family() {
  return usual_family("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM",
                      to_say("as hunyuan_v1_dense, each token through a few of many MLPs and one more"),
                      &hunyuan_v1_moe_keys, &hunyuan_v1_moe_names);
}

}  // namespace headscope
