#pragma once
// What both kinds of Gemma 4 share.

#include "core/model/families/usual.h"

namespace headscope {

void gemma4_text_keys(ConfigMap& keys, ModelConfig& c);
/// Without inputs of every layer's own and without experts.
void gemma4_unified_text_keys(ConfigMap& keys, ModelConfig& c);
WeightNames gemma4_names(const ModelConfig&);

}  // namespace headscope
