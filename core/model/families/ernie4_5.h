#pragma once
// What ERNIE 4.5 and PaddleOCR-VL share.

#include "core/model/families/usual.h"

namespace headscope {

/// `layout`: which numbers of a head are turned together.
void ernie4_5_like(ConfigMap& keys, ModelConfig& c, RotaryLayout layout);

}  // namespace headscope
