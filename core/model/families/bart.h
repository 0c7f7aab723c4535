#pragma once
// What BART shares with those made after it.

#include "core/model/families/two_stacks.h"

namespace headscope {

/// All but what is added to the embeddings. `place`: norms of every sum, or before attention and MLP and behind the
/// last block.
void bart_like(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder, NormPlace place = NormPlace::after_sum);
WeightNames bart_names(const ModelConfig& stack);

}  // namespace headscope
