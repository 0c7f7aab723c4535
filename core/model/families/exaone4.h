#pragma once
// What EXAONE 4.0 and EXAONE with experts share.

#include "core/model/families/usual.h"

namespace headscope {

/// sliding_window with layer_types, or in all layers but every fourth: where some have a window, those alone are
/// rotated; null: no layer has one, and all are.
void exaone4_windows(ConfigMap& keys, ModelConfig& c);

}  // namespace headscope
