#pragma once
// What the generations of Gemma share.

#include "core/model/families/usual.h"

namespace headscope {

/// Extents, norms and what embeddings are multiplied by.
void gemma_stream(ConfigMap& keys, ModelConfig& c);
/// Of Gemma 2 and 3: what scores are divided by, and the caps of scores and logits where the file names none.
void gemma_scores(ConfigMap& keys, ModelConfig& c, double score_cap, double logit_cap);
void gemma2_like(ConfigMap& keys, ModelConfig& c);
void gemma3_text_keys(ConfigMap& keys, ModelConfig& c);
/// Of Gemma 2 and 3, with norms before and behind each part.
WeightNames gemma2_names(const ModelConfig&);

}  // namespace headscope
