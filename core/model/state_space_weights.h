#pragma once
// Where layers of Mamba and Mamba-2 keep their weights, as Hugging Face has them.

#include <string>

#include "core/model/family.h"
#include "core/model/weight_reader.h"

namespace headscope {

struct StateSpaceNames {
  std::string in = "mixer.in_proj", convolution = "mixer.conv1d", select = "mixer.x_proj", step = "mixer.dt_proj",
              delta_bias = "mixer.dt_bias", decay_log = "mixer.A_log", d = "mixer.D", norm = "mixer.norm";
  std::string step_norm = "mixer.dt_layernorm", b_norm = "mixer.b_layernorm", c_norm = "mixer.c_layernorm";
  /// Of Lane::delta: queries, keys and values in one matrix, their gate, β and Δ; or, where `grouped` is set, for every
  /// key head its query, its key, its values and their gates, and (`grouped_rates`) its β and its Δ.
  std::string qkv = "linear_attn.in_proj_qkv", gate = "linear_attn.in_proj_z", rate = "linear_attn.in_proj_b",
              steps = "linear_attn.in_proj_a", grouped, grouped_rates;
  /// Of StateSpaceConfig::steady: `qkv` has of every head what makes its query, its key and its value, `gate` is as
  /// above; and what lanes decay by, in files that have it.
  std::string slopes;
  /// In place of `qkv`: each by itself; their convolutions too, in files that have not the one of all.
  std::string q, k, v, q_convolution, k_convolution, v_convolution;
  std::string out = "";  ///< its output matrix, where that has another name than attention's
};

/// Reads the mixer of block `layer`, which stands at `at`, but for its output matrix. What a file keeps in one matrix
/// are views of it.
void read_state_space(WeightReader& reader, const std::string& at, const StateSpaceNames& names,
                      const ModelConfig& config, int layer, RawStateSpace& into);

}  // namespace headscope
