#pragma once
// What BART shares with those made after it.

#include "core/model/families/two_stacks.h"

namespace headscope {

/// All but what is added to the embeddings. `place`: norms of every sum, or before attention and MLP and behind the
/// last block.
void bart_like(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder, NormPlace place = NormPlace::after_sum);
/// BART and mBART: learned positions from row 2, and a norm of the embeddings' sum.
void bart_with_normed_embeddings(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder, NormPlace place);
WeightNames bart_names(const ModelConfig& stack);

}  // namespace headscope
