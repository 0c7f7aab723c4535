#pragma once
// What the families of LFM2 share.

#include "core/model/families/usual.h"

namespace headscope {

/// All behind the extents but ends and experts: norms, rotation, and most layers a gated convolution of a few tokens.
void lfm2_like(ConfigMap& keys, ModelConfig& c);
/// As other families' ends, by either of their keys.
void lfm2_ends(ConfigMap& keys, ModelConfig& c);
WeightNames lfm2_names(const ModelConfig&);

}  // namespace headscope
