#include "core/model/families/hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/nth.h"

namespace headscope {

namespace limit = config_limits;
using Lane = StateSpaceConfig::Lane;

void step_limits(ConfigMap& keys, StateSpaceConfig& s) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), huge = std::numeric_limits<double>::max();
  if (!keys.reading()) {
    if (s.least_step > 0 || std::isfinite(s.most_step))
      keys.put("time_step_limit", std::vector<double>{s.least_step, std::min(s.most_step, huge)});
    return;
  }
  if (!keys.json().has("time_step_limit")) return;
  const std::vector<double> both = keys.json().numbers("time_step_limit", 0, infinity);
  if (both.size() != 2 || both[0] > both[1])
    throw keys.json().error("time_step_limit", "the least step and the most",
                            std::to_string(both.size()) + " numbers, or the least above the most");
  s.least_step = both[0];
  s.most_step = both[1] >= huge ? infinity : both[1];
}

namespace {
/// A whole number, or "auto", which is `by_itself`.
void number_or_auto(ConfigMap& keys, const std::string& key, int& value, int high, int by_itself) {
  if (keys.reading() && (!keys.json().has(key) || keys.json().is_text(key))) {
    if (const std::string word = keys.json().text(key, "auto"); word != "auto")
      throw keys.json().error(key, "a whole number or \"auto\"", word);
    value = by_itself;
    return;
  }
  keys.integer(key, value, 1, high);
}
}  // namespace

void hybrid_states(ConfigMap& keys, ModelConfig& c, Lane lane, std::vector<Mixer> mixers) {
  ModelDims& d = c.dims;
  const bool reading = keys.reading(), heads = lane == Lane::head;
  if (reading && std::ranges::count(mixers, Mixer::state_space) == 0) return settle_mixers(c, std::move(mixers));
  if (!reading && !c.state_space) return;  // no layer has one
  if (reading) c.state_space.emplace().lane = lane;
  StateSpaceConfig& s = *c.state_space;
  int expand = reading ? 2 : d.d_inner / d.d_model;
  keys.integer("mamba_expand", expand, 1, 1024, 2);
  if (reading) inner_extents(keys.json(), d, expand, d.d_model, "mamba_expand");
  keys.integer("mamba_d_state", d.d_state, 1, limit::d_mlp, heads ? 256 : 16);
  keys.integer("mamba_d_conv", s.convolution, 1, limit::d_head, 4);
  keys.flag("mamba_conv_bias", s.convolution_bias, true);
  keys.flag("mamba_proj_bias", s.bias, false);
  if (heads) {
    keys.integer("mamba_n_heads", d.lanes, 1, limit::d_mlp, 128);
    keys.integer("mamba_n_groups", d.state_groups, 1, limit::heads, 1);
    int width = reading ? 0 : d.d_inner / d.lanes;
    number_or_auto(keys, "mamba_d_head", width, limit::d_mlp, d.d_inner / d.lanes);
    step_limits(keys, s);
    if (reading && std::int64_t{d.lanes} * width != d.d_inner)
      throw keys.json().error("mamba_d_head",
                              fmt::format("with mamba_n_heads the width mamba_expand · hidden_size = {}", d.d_inner),
                              fmt::format("{} · {}", d.lanes, width));
    s.gated_norm = true;
    if (reading) convolved_extents(keys.json(), d, "mamba_d_state");
  } else {
    number_or_auto(keys, "mamba_dt_rank", s.step_rank, limit::d_model, (d.d_model + 15) / 16);
    d.lanes = d.convolved = d.d_inner;
    d.state_groups = 1;
  }
  if (!reading) return;
  settle_heads(keys, c, mixers, heads ? "mamba_n_heads" : "mamba_expand", "mamba_n_groups");
  settle_mixers(c, std::move(mixers));
}

void delta_states(ConfigMap& keys, ModelConfig& c) {
  ModelDims& d = c.dims;
  std::vector<Mixer> mixers;
  if (!keys.reading()) {
    put_layer_types(keys, c, "layer_types");
    if (!c.state_space) return;  // no layer has one
  } else {
    const int interval = keys.json().integer("full_attention_interval", 1, limit::layers, 4);
    mixers = hybrid_layer_types(keys, c, "layer_types", Mixer::state_space, {{"linear_attention", Mixer::state_space}});
    for (int layer = 0; !keys.json().has("layer_types") && layer < d.layers; ++layer)
      if ((layer + 1) % interval == 0) nth(mixers, layer) = Mixer::attention;
    if (std::ranges::count(mixers, Mixer::state_space) == 0) return settle_mixers(c, std::move(mixers));
    StateSpaceConfig& s = c.state_space.emplace();
    s.lane = Lane::delta;
    s.convolution_bias = false;
    s.gated_norm = true;
    d.state_kind = StateKind::delta;
  }
  int width = d.lanes > 0 ? d.d_inner / d.lanes : 0;
  keys.integer("linear_num_value_heads", d.lanes, 1, limit::d_mlp, 32);
  keys.integer("linear_num_key_heads", d.state_groups, 1, limit::heads, 16);
  keys.integer("linear_key_head_dim", d.d_state, 1, limit::d_head, 128);
  keys.integer("linear_value_head_dim", width, 1, limit::d_head, 128);
  keys.integer("linear_conv_kernel_dim", c.state_space->convolution, 1, limit::d_head, 4);
  if (!keys.reading()) return;
  inner_extents(keys.json(), d, d.lanes, width, "linear_value_head_dim");
  convolved_extents(keys.json(), d, "linear_key_head_dim");
  settle_heads(keys, c, mixers, "linear_num_value_heads", "linear_num_key_heads");
  settle_mixers(c, std::move(mixers));
}

void inner_extents(const ConfigReader& json, ModelDims& d, int lanes, int width, const std::string& key) {
  const std::int64_t inner = std::int64_t{lanes} * width;
  if (inner > limit::d_mlp)
    throw json.error(key, fmt::format("a layer with a state of at most {} channels", limit::d_mlp),
                     fmt::format("{} · {}", lanes, width));
  d.d_inner = static_cast<int>(inner);
}

void convolved_extents(const ConfigReader& json, ModelDims& d, const std::string& key) {
  const std::int64_t convolved = d.d_inner + 2 * std::int64_t{d.state_groups} * d.d_state;
  constexpr int most = 4 * limit::d_mlp;
  if (convolved > most)
    throw json.error(key, fmt::format("at most {} channels that are convolved", most),
                     fmt::format("{} + 2 · {} · {}", d.d_inner, d.state_groups, d.d_state));
  d.convolved = static_cast<int>(convolved);
}

void settle_heads(ConfigMap& keys, ModelConfig& c, const std::vector<Mixer>& mixers, const std::string& lanes_key,
                  const std::string& groups_key) {
  ModelDims& d = c.dims;
  if (std::ranges::count(mixers, Mixer::state_space) == 0) return;
  if (d.lanes % d.state_groups != 0)
    throw keys.json().error(groups_key, fmt::format("a divisor of {} = {}", lanes_key, d.lanes),
                            std::to_string(d.state_groups));
  if (d.lanes % d.heads == 0) return;
  const bool lanes_are_heads = c.state_space->lane == Lane::head || c.state_space->lane == Lane::delta;
  if (!lanes_are_heads || std::ranges::count(mixers, Mixer::attention) == 0)
    throw keys.json().error(lanes_key, fmt::format("lanes that the {} heads of attention divide", d.heads),
                            std::to_string(d.lanes), "a head of such a layer is shown as so many neighbouring lanes");
  if (d.lanes > limit::heads)
    throw keys.json().error(
        lanes_key,
        fmt::format("at most {} heads, or lanes that the {} heads of attention divide", limit::heads, d.heads),
        std::to_string(d.lanes));
  d.state_heads = d.lanes;
}

void settle_mixers(ModelConfig& c, std::vector<Mixer> mixers) {
  ModelDims& d = c.dims;
  d.mixers = std::move(mixers);
  if (d.hybrid()) return;
  const bool attends = d.any_attends();
  d.mixers.clear();
  if (attends) {
    d.d_inner = d.lanes = d.state_groups = d.d_state = d.convolved = d.state_heads = 0;
    d.state_kind = StateKind::selective;
    c.state_space.reset();
    return;
  }
  d.kv_heads = d.heads;
  d.d_head = d.d_inner / d.heads;
  c.position = PositionKind::none;
  c.rotary = {};
  c.score_scale.reset();
  c.output_gate = c.bias.output_gate = false;
  c.bias.q = c.bias.k = c.bias.v = false;
  c.bias.o = c.state_space->biased_out();
}

std::vector<Mixer> hybrid_layer_types(ConfigMap& keys, const ModelConfig& c, const std::string& key, Mixer usual,
                                      std::vector<std::pair<const char*, Mixer>> words) {
  const auto layers = static_cast<std::size_t>(c.dims.layers);
  const auto types = keys.json().texts(key);
  if (!types) return std::vector<Mixer>(layers, usual);
  if (types->size() != layers)
    throw keys.json().error(key, fmt::format("a kind for each of {} layers", layers), std::to_string(types->size()));
  std::vector<Mixer> out;
  words.emplace_back("full_attention", Mixer::attention);
  for (const std::string& type : *types) out.push_back(keys.json().choice<Mixer>(key, type, words));
  return out;
}

void put_layer_types(ConfigMap& keys, const ModelConfig& c, const std::string& key) {
  std::vector<std::string> types;
  for (int layer = 0; layer < c.dims.layers; ++layer)
    types.emplace_back(c.dims.attends(layer) ? "full_attention" : "linear_attention");
  keys.put(key, types);
}

StateSpaceNames state_space_names(const std::string& mixer) {
  StateSpaceNames names;
  names.in = mixer + "in_proj", names.convolution = mixer + "conv1d", names.select = mixer + "x_proj";
  names.step = mixer + "dt_proj", names.delta_bias = mixer + "dt_bias", names.decay_log = mixer + "A_log";
  names.step_norm = mixer + "dt_layernorm", names.b_norm = mixer + "b_layernorm", names.c_norm = mixer + "c_layernorm";
  names.d = mixer + "D", names.norm = mixer + "norm", names.out = mixer + "out_proj";
  return names;
}

WeightNames bamba_names(const ModelConfig&) {
  WeightNames names;
  names.ln2 = "pre_ff_layernorm";
  names.gate = "feed_forward.gate_proj", names.up = "feed_forward.up_proj", names.down = "feed_forward.down_proj";
  names.final_norm = "final_layernorm";
  names.state_space = state_space_names("mamba.");
  return names;
}

}  // namespace headscope
