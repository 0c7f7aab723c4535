#pragma once
// What files of GTE share, whichever of its two names they have.

#include <string>

#include "core/model/families/usual.h"

namespace headscope {

/// `base`: of the rotation, where the file says none.
void gte_keys(ConfigMap& keys, ModelConfig& c, double base);
/// Whose tensors are called as its makers or as transformers call them.
Family gte_like(std::string model_type, std::string architecture, std::string summary,
                void (*map)(ConfigMap& keys, ModelConfig& c));

}  // namespace headscope
