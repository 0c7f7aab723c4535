#pragma once
// A family of encoder-decoders: one configuration for the decoder, which owns that of the encoder, and names for the
// tensors of each.

#include <string>

#include "core/model/config_map.h"
#include "core/model/usual_weights.h"

namespace headscope {

/// `map` fills both; when it is called c.encoder may be null. `names`: the tensors of one stack of a configuration that
/// `map` read.
Family two_stack_family(std::string model_type, std::string architecture, std::string summary,
                        void (*map)(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder),
                        WeightNames (*names)(const ModelConfig& stack));

/// decoder_start_token_id. Throws Error when it is not in the vocabulary.
void start_token(ConfigMap& keys, ModelConfig& decoder, int fallback);

}  // namespace headscope
