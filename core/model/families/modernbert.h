#pragma once
// What ModernBERT and its decoder share.

#include "core/model/families/usual.h"

namespace headscope {

void modernbert_like(ConfigMap& keys, ModelConfig& c, bool causal);
WeightNames modernbert_names(const ModelConfig&);

}  // namespace headscope
