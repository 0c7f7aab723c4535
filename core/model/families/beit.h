#pragma once
// What data2vec's half that sees shares with BEiT.

#include <string>

#include "core/model/families/usual.h"

namespace headscope {

void beit_keys(ConfigMap& keys, ModelConfig& c);
/// `model`: what stands before the names of the tensors ("beit.").
WeightNames beit_names(const ModelConfig& c, const std::string& model);

}  // namespace headscope
