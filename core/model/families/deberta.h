#pragma once
// What both versions of DeBERTa share.

#include "core/model/families/usual.h"

namespace headscope {

/// `v2`: positions in buckets, projections that distances share with contents, a norm of their table.
void deberta_keys(ConfigMap& keys, ModelConfig& c, bool v2);
WeightNames deberta_names();

}  // namespace headscope
