#pragma once
// What DeepSeek's families share: latent keys and values, and experts behind the first layers.

#include <optional>
#include <string>

#include "core/model/config_map.h"
#include "core/model/usual_weights.h"

namespace headscope {

/// Where keys are absent.
struct DeepseekUsual {
  int dense_layers = 0, experts = 0, per_token = 0, shared = 0, width = 0;
  int q_latent = 1536;  ///< 0: queries are made of the stream
  double scale = 1;
  bool share_of_head = false;  ///< partial_rotary_factor is that of whole heads, not of what turns of them alone
  std::string count_key = "n_routed_experts", shared_key = "n_shared_experts";
};
void deepseek_keys(ConfigMap& keys, ModelConfig& c, const DeepseekUsual& usual);
/// The first layers have one MLP for all tokens, the others experts, some of which take every token.
void deepseek_experts(ConfigMap& keys, ModelConfig& c, const DeepseekUsual& usual);
/// Of V3: sigmoids with a correction, and groups.
void deepseek_router(ConfigMap& keys, ExpertConfig& e, int groups, int kept, bool renormalized);
/// The groups that experts come from, of which `kept` take a token. Without usual numbers they must be there.
void deepseek_groups(ConfigMap& keys, ExpertConfig& e, std::optional<int> groups = {}, std::optional<int> kept = {});
/// The key by which the file says it: as the library, or as its makers do.
std::string deepseek_either(ConfigMap& keys, const std::string& today, const std::string& theirs);
/// A key of which only `value` is known.
void deepseek_only(ConfigMap& keys, const std::string& key, const std::string& value);
WeightNames deepseek_names(const ModelConfig& c);

}  // namespace headscope
