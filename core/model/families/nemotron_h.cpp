// Nemotron-H (NVIDIA, Nemotron-H: A Family of Accurate and Efficient Hybrid Mamba-Transformer Models, 2025): each layer
// is one thing, a state space with heads (Mamba-2), attention without positions, an MLP, or experts. Here a block is
// one that mixes tokens and the MLP behind it, where one is: what both add to the stream is the same.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/words.h"
#include "core/model/expert_keys.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/hybrid.h"

namespace headscope {

namespace limit = config_limits;

namespace {
constexpr const char* pattern_key = "hybrid_override_pattern";

/// "M" a state, "*" attention, "-" an MLP, "E" experts; by either key.
std::string read_pattern(const ConfigReader& json) {
  if (json.has(pattern_key)) return json.text(pattern_key);
  const char* const key = json.has("layers_block_type") ? "layers_block_type" : "layer_types";
  const auto types = json.texts(key);
  if (!types) throw json.error(pattern_key, "the kind of every layer, such as M-M*-", "nothing");
  std::string pattern;
  for (const std::string& type : *types)
    pattern += json.choice<char>(key, type,
                                 {{"mamba", 'M'},
                                  {"linear_attention", 'M'},
                                  {"attention", '*'},
                                  {"full_attention", '*'},
                                  {"mlp", '-'},
                                  {"moe", 'E'}});
  return pattern;
}

std::string written_pattern(const ModelConfig& c) {
  const ModelDims& d = c.dims;
  std::string pattern;
  for (int layer = 0; layer < d.layers; ++layer) {
    pattern += d.attends(layer) ? "*" : "M";
    if (d.has_mlp(layer)) pattern += c.experts.at(layer) ? "E" : "-";
  }
  return pattern;
}

/// Blocks of the layers that are written in `pattern`: their mixers, which have no MLP, and which have experts.
std::vector<Mixer> blocks_of(const ConfigReader& json, const std::string& pattern, ModelConfig& c) {
  ModelDims& d = c.dims;
  std::vector<Mixer> mixers;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char kind = pattern[i];
    if (kind == 'M' || kind == '*') {
      mixers.push_back(kind == 'M' ? Mixer::state_space : Mixer::attention);
      d.bare.push_back(true);
      c.experts.layers.push_back(false);
    } else if ((kind == '-' || kind == 'E') && !mixers.empty() && d.bare.back()) {
      d.bare.back() = false;
      c.experts.layers.back() = kind == 'E';
    } else {
      throw json.error(pattern_key, "layers with a state (M), attention (*), and MLPs (-) or experts (E) behind them",
                       kind == '-' || kind == 'E'
                           ? fmt::format("an MLP as layer {}, with none of the others before it", i)
                           : fmt::format("\"{}\" as layer {}", kind, i));
    }
  }
  if (mixers.empty() || mixers.size() > limit::layers)
    throw json.error(pattern_key, fmt::format("1 to {} layers that mix tokens", limit::layers),
                     std::to_string(mixers.size()));
  d.layers = static_cast<int>(mixers.size());
  return mixers;
}

/// These models know a least step (time_step_min) alone.
void check_limits(ConfigMap& keys) {
  StateSpaceConfig asked;
  step_limits(keys, asked);
  if (asked.least_step > 0 || std::isfinite(asked.most_step))
    throw keys.json().error("time_step_limit", "[0, Infinity]: time_step_min alone limits the steps of this family",
                            fmt::format("[{}, {}]", asked.least_step, asked.most_step));
}

/// Experts as in DeepSeek V3, without a gate, and one of another width for all tokens.
void nemotron_h_experts(ConfigMap& keys, ModelConfig& c) {
  ExpertConfig& e = c.experts;
  expert_keys(keys, c,
              {.count = "n_routed_experts",
               .count_too = "num_local_experts",
               .usual_count = 8,
               .usual_per_token = 2,
               .usual_width = 7688});
  keys.integer("moe_shared_expert_intermediate_size", e.shared_width, 1, limit::d_mlp, 7688);
  keys.number("routed_scaling_factor", e.scale, 1e-6, 1e6, 1);
  deepseek_router(keys, e, 1, 1, true);
  e.own_bias = false;
  if (!keys.reading()) return;
  if (keys.json().has("moe_latent_size"))
    throw keys.json().error("moe_latent_size", "null: experts that read the stream",
                            std::to_string(keys.json().integer("moe_latent_size", 1, limit::d_model)),
                            "experts between two matrices (LatentMoE) are not read");
  if (const int shared = keys.json().integer("n_shared_experts", 0, 1024, 1); shared != 1)
    throw keys.json().error("n_shared_experts", "1: the library has one expert for all tokens, whatever this says",
                            std::to_string(shared));
}

void nemotron_h_keys(ConfigMap& keys, ModelConfig& c) {
  ModelDims& d = c.dims;
  std::vector<Mixer> mixers;
  if (keys.reading()) {
    const std::string pattern = read_pattern(keys.json());
    mixers = blocks_of(keys.json(), pattern, c);
    if (const auto layers = static_cast<int>(pattern.size());
        keys.json().has("num_hidden_layers") && keys.json().integer("num_hidden_layers", 1, 1 << 16) != layers)
      throw keys.json().error("num_hidden_layers", fmt::format("{}, as {} names layers", layers, pattern_key),
                              std::to_string(keys.json().integer("num_hidden_layers", 1, 1 << 16)));
    c.state_space.emplace().lane = StateSpaceConfig::Lane::head;
  } else {
    std::string pattern = written_pattern(c);
    keys.text(pattern_key, pattern, "");
  }
  keys.integer("num_attention_heads", d.heads, 1, limit::heads, 32);
  keys.integer("num_key_value_heads", d.kv_heads, 1, limit::heads, 8);
  keys.integer("head_dim", d.d_head, 1, limit::d_head, 128);
  keys.integer("hidden_size", d.d_model, 1, limit::d_model);
  int mlp = std::max(d.d_mlp, 1);
  keys.integer("intermediate_size", mlp, 1, limit::d_mlp, 21504);
  keys.integer("max_position_embeddings", c.context, 1, limit::context, 4096);
  keys.integer("vocab_size", d.vocab, 1, limit::vocab);
  if (keys.reading()) {
    d.d_mlp = mlp;
    if (d.heads % d.kv_heads != 0)
      throw keys.json().error("num_key_value_heads", fmt::format("a divisor of num_attention_heads = {}", d.heads),
                              std::to_string(d.kv_heads));
    for (const char* of_others : {"n_routed_experts", "num_local_experts", "layer_types"})
      (void)keys.json().has(of_others);
    if (std::ranges::count(c.experts.layers, true) == 0) c.experts.layers.clear();
  }
  if (keys.reading() ? !c.experts.layers.empty() : c.experts.count > 0) nemotron_h_experts(keys, c);
  keys.norm(c, NormKind::rms_norm, "layer_norm_epsilon", 1e-5);
  keys.activation("mlp_hidden_act", c.activation, "relu2");
  c.position = PositionKind::none;
  c.bias = keys.reading() ? BiasSet::none() : c.bias;
  keys.flag("mlp_bias", c.bias.up, false);
  c.bias.down = c.bias.up;
  if (keys.reading() || c.state_space) {
    StateSpaceConfig& s = *c.state_space;
    int width = keys.reading() ? 0 : d.d_inner / d.lanes;
    keys.integer("mamba_num_heads", d.lanes, 1, limit::d_mlp, 128);
    keys.integer("mamba_head_dim", width, 1, limit::d_mlp, 64);
    keys.integer("n_groups", d.state_groups, 1, limit::heads, 8);
    keys.integer("ssm_state_size", d.d_state, 1, limit::d_mlp, 128);
    keys.integer("conv_kernel", s.convolution, 1, limit::d_head, 4);
    keys.flag("use_conv_bias", s.convolution_bias, true);
    keys.flag("use_bias", s.bias, false);
    keys.number("time_step_min", s.least_step, 0, 1e6, 0.001);
    Activation behind = c.state_activation.value_or(c.activation);
    keys.activation("mamba_hidden_act", behind, "silu");
    c.state_activation = behind;
    s.gated_norm = true;
    if (keys.reading()) {
      inner_extents(keys.json(), d, d.lanes, width, "mamba_head_dim");
      convolved_extents(keys.json(), d, "ssm_state_size");
      check_limits(keys);
    }
  }
  if (keys.reading()) {
    if (std::ranges::count(d.bare, true) == 0) d.bare.clear();
    if (std::ranges::count(d.bare, false) == 0 && !d.bare.empty()) d.bare.clear(), d.d_mlp = 0;
    if (std::ranges::count(c.experts.layers, false) == 0) c.experts.layers.clear();
    settle_heads(keys, c, mixers, "mamba_num_heads", "n_groups");
    settle_mixers(c, std::move(mixers));
    if (!c.state_space) c.state_activation.reset();
  }
  keys.ends(c, false);
  if (keys.reading()) c.tied_embeddings = false;  // whatever the key says: the library ties nothing in this family
}

WeightNames nemotron_h_names(const ModelConfig& c) {
  WeightNames names;
  names.prefixes = {"backbone.", "model.", ""};
  names.embedding = "embeddings";
  names.ln1 = "norm";
  names.q = "mixer.q_proj", names.k = "mixer.k_proj", names.v = "mixer.v_proj", names.o = "mixer.o_proj";
  names.up = "mixer.up_proj", names.down = "mixer.down_proj";
  names.experts.router = "mixer.gate", names.experts.correction = "mixer.gate.e_score_correction_bias";
  names.experts.expert = "mixer.experts.", names.experts.shared = "mixer.shared_experts.";
  names.experts.gate_up_of_all = "mixer.experts.up_proj", names.experts.down_of_all = "mixer.experts.down_proj";
  names.experts.rows = true;
  names.state_space = state_space_names("mixer.");
  names.final_norm = "norm_f";
  int stored = 0;
  for (int layer = 0; layer < c.dims.layers; ++layer) {
    const int mixer = stored++;
    names.apart.emplace_back(mixer, c.dims.has_mlp(layer) ? stored++ : -1);
  }
  return names;
}
}  // namespace

Family nemotron_h_family();  // declared with all others in family.cpp
Family nemotron_h_family() {
  return usual_family("nemotron_h", "NemotronHForCausalLM",
                      to_say("layers of a state space with heads, a few that attend, MLPs behind some"),
                      &nemotron_h_keys, &nemotron_h_names);
}

}  // namespace headscope
