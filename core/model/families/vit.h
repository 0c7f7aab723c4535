#pragma once
// What vision transformers share.

#include "core/model/config_map.h"
#include "core/model/usual_weights.h"

namespace headscope {

void vit_keys(ConfigMap& keys, ModelConfig& c);
/// `model`: what stands before the names of the tensors ("vit.").
WeightNames vit_names(const std::string& model);

/// CLIP's half that sees, its keys at the top.
void clip_vision_keys(ConfigMap& keys, ModelConfig& c);
WeightNames clip_vision_names(const ModelConfig& c);

}  // namespace headscope
