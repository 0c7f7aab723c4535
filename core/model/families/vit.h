#pragma once
// What vision transformers share.

#include <string>

#include "core/model/config_map.h"
#include "core/model/usual_weights.h"

namespace headscope {

void vit_keys(ConfigMap& keys, ModelConfig& c);
/// `model`: what stands before the names of the tensors ("vit.").
WeightNames vit_names(const std::string& model);

/// DINOv2; with a `vision` of its own where that is set.
void dinov2_keys(ConfigMap& keys, ModelConfig& c);
WeightNames dinov2_names(const ModelConfig& c);
/// CLIP's half that sees, its keys at the top.
void clip_vision_keys(ConfigMap& keys, ModelConfig& c);
WeightNames clip_vision_names(const ModelConfig& c);
/// SigLIP's.
void siglip_vision_keys(ConfigMap& keys, ModelConfig& c);
WeightNames siglip_vision_names(const ModelConfig& c);
/// The family of a model of pictures and texts whose half that sees has its keys in vision_config. `patch`: the side of
/// one where the file says none.
Family seeing_half(std::string model_type, std::string summary, void (*map)(ConfigMap& keys, ModelConfig& config),
                   WeightNames (*names)(const ModelConfig& config), int patch);

}  // namespace headscope
