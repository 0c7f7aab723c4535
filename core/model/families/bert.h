#pragma once
// What BERT and those made after it share.

#include "core/model/config_map.h"
#include "core/model/usual_weights.h"

namespace headscope {

/// An encoder that normalises the stream itself, with a layer before its logits: all but names and extents.
void bert_like(ConfigMap& keys, ModelConfig& c, const std::string& activation_key,
               const std::string& activation = "gelu");
/// `activation`: where the file says none.
void bert_keys(ConfigMap& keys, ModelConfig& c, const std::string& activation = "gelu");
/// `model`: what stands before the names of the encoder's tensors ("bert.").
WeightNames bert_names(const std::string& model);

void roberta_keys(ConfigMap& keys, ModelConfig& c);
WeightNames roberta_names(const ModelConfig& c);

}  // namespace headscope
