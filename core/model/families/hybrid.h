#pragma once
// What families have in common of which some layers are attention and others a state space.

#include <string>
#include <utility>
#include <vector>

#include "core/model/families/usual.h"

namespace headscope {

/// mamba_d_state, mamba_d_conv, mamba_expand, mamba_conv_bias, mamba_proj_bias, and with heads mamba_n_heads,
/// mamba_d_head, mamba_n_groups, time_step_limit, else mamba_dt_rank: the layers that `mixers` (one of each layer) says
/// mix by a state. Sets the extents of ModelDims and config.state_space. REQUIRES the extents of attention, and
/// reading: `mixers`. Throws as settle_heads().
void hybrid_states(ConfigMap& keys, ModelConfig& config, StateSpaceConfig::Lane lane, std::vector<Mixer> mixers);

/// linear_num_value_heads, linear_num_key_heads, linear_key_head_dim, linear_value_head_dim, linear_conv_kernel_dim:
/// the layers that layer_types (or full_attention_interval, usually every fourth) does not give to attention keep a
/// state by the gated delta rule. Otherwise as hybrid_states().
void delta_states(ConfigMap& keys, ModelConfig& config);

/// Heads of the layers that `mixers` gives a state: as many as attend, each so many neighbouring lanes; where those do
/// not divide lanes that are heads themselves, these (dims.state_heads). Throws Error naming the keys where groups of B
/// and C do not divide the lanes, or heads that attend do not divide lanes that are channels, or none attends.
void settle_heads(ConfigMap& keys, ModelConfig& config, const std::vector<Mixer>& mixers, const std::string& lanes_key,
                  const std::string& groups_key);

/// d_inner, `lanes` of `width`; and convolved, which is that and B and C of all groups. Throws Error naming `key` past
/// config_limits.
void inner_extents(const ConfigReader& json, ModelDims& dims, int lanes, int width, const std::string& key);
void convolved_extents(const ConfigReader& json, ModelDims& dims, const std::string& key);

/// Where a layer is of one kind or the other: dims.mixers, or nothing where all are alike; then the extents of the kind
/// that no layer is are forgotten, too.
void settle_mixers(ModelConfig& config, std::vector<Mixer> mixers);

/// layer_types, "full_attention" or one of the family's `words`, others refused; absent: as `usual` says.
std::vector<Mixer> hybrid_layer_types(ConfigMap& keys, const ModelConfig& config, const std::string& key, Mixer usual,
                                      std::vector<std::pair<const char*, Mixer>> words);

/// Writes it.
void put_layer_types(ConfigMap& keys, const ModelConfig& config, const std::string& key);

/// Names of a mixer that stands at `mixer` ("mamba.") in a block.
StateSpaceNames state_space_names(const std::string& mixer);

/// Of Bamba's layers, and Falcon-H1's: a mixer "mamba." and a gated MLP "feed_forward." behind a norm.
WeightNames bamba_names(const ModelConfig& config);

/// time_step_limit: [least, most] of a step; most may be Infinity.
void step_limits(ConfigMap& keys, StateSpaceConfig& state_space);

}  // namespace headscope
