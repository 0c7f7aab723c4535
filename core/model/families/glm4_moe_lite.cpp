// GLM-4.7 Flash (Z.ai, 2026): attention and experts as in DeepSeek V3, layers with experts told one by one.

#include <algorithm>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/usual.h"

namespace headscope {

namespace {
/// mlp_layer_types, where the file has it: "dense" layers before "sparse" ones, as first_k_dense_replace would say.
std::optional<int> dense_layers(const ConfigReader& json) {
  const auto types = json.texts("mlp_layer_types");
  if (!types) return std::nullopt;
  const auto first = std::ranges::find(*types, "sparse");
  const auto none_behind = std::ranges::find(first, types->end(), "dense") == types->end();
  const auto known = std::ranges::all_of(*types, [](const std::string& t) { return t == "dense" || t == "sparse"; });
  if (!none_behind || !known)
    throw json.error("mlp_layer_types", "\"dense\" layers, then \"sparse\" ones", "another order");
  return static_cast<int>(first - types->begin());
}

void glm4_moe_lite_keys(ConfigMap& keys, ModelConfig& c) {
  bool adjacent = c.rotary.layout == RotaryLayout::interleaved;
  keys.flag("rope_interleave", adjacent, true);
  c.rotary.layout = adjacent ? RotaryLayout::interleaved : RotaryLayout::half_split;
  int dense = 1;
  if (keys.reading()) dense = dense_layers(keys.json()).value_or(1);
  deepseek_keys(keys, c,
                {.dense_layers = dense, .experts = 64, .per_token = 4, .shared = 1, .width = 1536, .scale = 1.8});
  if (c.experts.anywhere()) deepseek_router(keys, c.experts, 1, 1, true);
}
}  // namespace

Family glm4_moe_lite_family();  // declared with all others in family.cpp
Family glm4_moe_lite_family() {
  return usual_family("glm4_moe_lite", "Glm4MoeLiteForCausalLM",
                      to_say("as deepseek_v3, layers with experts told one by one"), &glm4_moe_lite_keys,
                      &deepseek_names);
}

}  // namespace headscope
