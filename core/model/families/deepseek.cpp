#include "core/model/families/deepseek.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/model/expert_keys.h"

namespace headscope {

namespace limit = config_limits;

namespace {
/// YaRN's factor on scores: 0.1 m ln s + 1, squared, since it stands for one on queries and one on keys.
double magnitude(double m, double factor) {
  return factor > 1 ? 0.1 * m * std::log(factor) + 1 : 1;
}

/// The rotation of the dimensions that turn, and the score scale that goes with it (`mscale_all_dim`).
void turning_keys(ConfigMap& keys, ModelConfig& c, int turning, bool share_of_head) {
  ModelConfig part = c;
  if (!share_of_head) part.dims.d_head = turning, part.rotary.width = 0;
  const double usual = 1 / std::sqrt(static_cast<double>(c.dims.d_head));
  if (!keys.reading()) {
    ConfigWriter rope = ConfigMap::written(part.rotary, part.dims.d_head);
    if (c.score_scale && part.rotary.factor > 1)
      rope.put("mscale_all_dim", (std::sqrt(*c.score_scale / usual) - 1) / (0.1 * std::log(part.rotary.factor)));
    return keys.put("rope_parameters", rope);
  }
  keys.rotary(part, 10000, static_cast<double>(turning) / part.dims.d_head);
  if (const int width = part.rotary.width > 0 ? part.rotary.width : part.dims.d_head; width != turning)
    throw keys.json().error("partial_rotary_factor",
                            fmt::format("the share that turns, qk_rope_head_dim = {} of {}", turning, part.dims.d_head),
                            fmt::format("{} dimensions", width));
  c.position = part.position;
  c.rotary = part.rotary;
  c.rotary.width = turning;
  for (const char* key : {"rope_parameters", "rope_scaling"})
    if (const auto rope = keys.json().object(key)) {
      const double m = rope->number("mscale_all_dim", 0, 100, 0);
      if (c.rotary.scaling != RotaryConfig::Scaling::none && m > 0)
        c.score_scale = usual * std::pow(magnitude(m, c.rotary.factor), 2);
      return;
    }
}

}  // namespace

void deepseek_experts(ConfigMap& keys, ModelConfig& c, const DeepseekUsual& usual) {
  ExpertConfig& e = c.experts;
  int dense = e.layers.empty() ? 0 : static_cast<int>(std::ranges::count(e.layers, false));
  if (!e.anywhere()) dense = c.dims.layers;
  keys.integer("first_k_dense_replace", dense, 0, limit::layers, usual.dense_layers);
  // What says how experts are chosen changes nothing where no layer has any.
  const bool none = keys.reading() && keys.json().null(usual.count_key);
  if (none || dense >= c.dims.layers) {
    if (keys.reading()) (void)keys.json().has(usual.count_key);
    return;
  }
  expert_keys(keys, c,
              {.count = usual.count_key,
               .count_too = "",
               .usual_count = usual.experts,
               .usual_per_token = usual.per_token,
               .usual_width = usual.width});
  int shared = keys.reading() ? 0 : e.shared_width / e.width, step = 1;
  if (!keys.reading() || !keys.json().null(usual.shared_key))
    keys.integer(usual.shared_key, shared, 0, 1024, usual.shared);
  keys.number("routed_scaling_factor", e.scale, 1e-6, 1e6, usual.scale);
  // Transformers does not look at it, DeepSeek's own code does: with 1 they agree.
  keys.integer("moe_layer_freq", step, 1, 1, 1);
  if (!keys.reading()) return;
  e.shared_width = shared * e.width;
  for (int layer = 0; dense > 0 && layer < c.dims.layers; ++layer) e.layers.push_back(layer >= dense);
}

void deepseek_router(ConfigMap& keys, ExpertConfig& e, int groups, int kept, bool renormalized) {
  e.score = RouterScore::sigmoid;
  e.correction = true;
  deepseek_groups(keys, e, groups, kept);
  keys.flag("norm_topk_prob", e.renormalized, renormalized);
  deepseek_only(keys, "topk_method", "noaux_tc");
  deepseek_only(keys, "scoring_func", "sigmoid");
}

void deepseek_keys(ConfigMap& keys, ModelConfig& c, const DeepseekUsual& usual) {
  ModelDims& d = c.dims;
  int turning = c.rotary.width, value = d.value_width();
  if (!keys.reading()) d.d_head -= turning;
  keys.extents(c, {.d_head = "qk_nope_head_dim"});
  if (keys.reading()) {
    if (!keys.json().has("qk_nope_head_dim")) d.d_head = 128;
    if (d.kv_heads != d.heads)
      throw keys.json().error("num_key_value_heads", fmt::format("num_attention_heads = {}", d.heads),
                              std::to_string(d.kv_heads), "the latent gives a key and a value to every head");
  }
  deepseek_experts(keys, c, usual);
  keys.integer("qk_rope_head_dim", turning, 2, limit::d_head, 64);
  keys.integer("v_head_dim", value, 1, limit::d_head, 128);
  d.d_head += turning;
  d.d_value = value;
  keys.integer("kv_lora_rank", d.kv_latent, 1, limit::d_model, 512);
  if (keys.reading())
    d.q_latent = keys.json().null("q_lora_rank") || (usual.q_latent == 0 && !keys.json().has("q_lora_rank"))
                     ? 0
                     : keys.json().integer("q_lora_rank", 1, limit::d_model, usual.q_latent);
  else
    keys.optional("q_lora_rank", d.q_latent);
  keys.norm(c, NormKind::rms_norm, "rms_norm_eps", 1e-6);
  turning_keys(keys, c, turning, usual.share_of_head);
  keys.gated_mlp("hidden_act", c, "silu");
  bool biased = c.bias.k;
  keys.flag("attention_bias", biased, false);
  if (keys.reading()) c.bias = BiasSet::none();
  c.bias.q = biased && d.q_latent > 0;
  c.bias.k = c.bias.o = biased;
  keys.ends(c, false);
}

void deepseek_groups(ConfigMap& keys, ExpertConfig& e, std::optional<int> groups, std::optional<int> kept) {
  keys.integer("n_group", e.groups, 1, e.count, groups);
  keys.integer("topk_group", e.groups_kept, 1, e.groups, kept);
  if (!keys.reading()) return;
  const int width = e.count / e.groups;
  if (e.count % e.groups != 0 || width < e.group_best)
    throw keys.json().error("n_group", fmt::format("groups of {} or more of the {} experts", e.group_best, e.count),
                            std::to_string(e.groups));
  if (e.per_token > e.groups_kept * width)
    throw keys.json().error("topk_group", fmt::format("groups with {} experts, as many as take a token", e.per_token),
                            fmt::format("{} of {}", e.groups_kept, width));
}

void deepseek_only(ConfigMap& keys, const std::string& key, const std::string& value) {
  std::string found = value;
  keys.text(key, found, value);
  if (found != value) throw keys.json().error(key, "\"" + value + "\"", "\"" + found + "\"");
}

std::string deepseek_either(ConfigMap& keys, const std::string& today, const std::string& theirs) {
  return keys.reading() && !keys.json().has(today) && keys.json().has(theirs) ? theirs : today;
}

WeightNames deepseek_names(const ModelConfig&) {
  WeightNames names;
  names.layers_behind = true;
  return names;
}

}  // namespace headscope
