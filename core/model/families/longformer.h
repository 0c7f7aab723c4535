#pragma once
// What LED shares with Longformer.

#include "core/model/config_map.h"

namespace headscope {

/// attention_window: how many tokens of both sides together each layer sees.
void windows_on_either_side(ConfigMap& keys, ModelConfig& c);

}  // namespace headscope
