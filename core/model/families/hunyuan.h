#pragma once
// What the families of HunYuan share.

#include "core/model/families/usual.h"

namespace headscope {

/// All but experts: as Llama, queries and keys normalised head by head behind their rotation.
void hunyuan_keys(ConfigMap& keys, ModelConfig& c);
WeightNames hunyuan_names(const ModelConfig&);

}  // namespace headscope
