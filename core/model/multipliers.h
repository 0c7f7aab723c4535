#pragma once
// Numbers of the configuration that matrices and biases of a block are multiplied by as they are read
// (ModelConfig::multipliers, value_scale). Private to core/model.

#include "core/model/family.h"

namespace headscope {

void multiply(const ModelConfig& config, RawLayer& layer);

}  // namespace headscope
