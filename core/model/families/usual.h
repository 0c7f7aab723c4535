#pragma once
// A family whose configuration is one map and whose weights lie as most do: what nearly every file of this folder is.

#include <string>

#include "core/model/config_map.h"
#include "core/model/usual_weights.h"

namespace headscope {

/// `map` names the keys; `names` the tensors of a configuration that `map` read. `architecture`: the class that Hugging
/// Face opens the folder with.
Family usual_family(std::string model_type, std::string architecture, std::string summary,
                    void (*map)(ConfigMap& keys, ModelConfig& config), WeightNames (*names)(const ModelConfig& config));

}  // namespace headscope
