#pragma once
// What DeepSeek's families share: latent keys and values.

#include "core/model/config_map.h"
#include "core/model/usual_weights.h"

namespace headscope {

/// Throws Error on a configuration with sparse layers.
void deepseek_keys(ConfigMap& keys, ModelConfig& c, int dense_layers);
WeightNames deepseek_names(const ModelConfig& c);

}  // namespace headscope
