#pragma once
// What config.json of Mamba and of Mamba-2 have in common.

#include "core/model/families/usual.h"

namespace headscope {

void mamba_keys(ConfigMap& keys, ModelConfig& config, StateSpaceConfig::Lane lane);
/// All keys of Mamba itself.
void mamba_channel_keys(ConfigMap& keys, ModelConfig& config);
WeightNames mamba_names(const ModelConfig& config);

}  // namespace headscope
