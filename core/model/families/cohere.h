#pragma once
// What Cohere's families share.

#include "core/model/families/usual.h"

namespace headscope {

/// All but norms of queries and keys, windows and ends. `base` of the rotation where the file says none.
void cohere_like(ConfigMap& keys, ModelConfig& config, double base);

}  // namespace headscope
