#pragma once
// How llama.cpp's GGUF files keep the families: the hyper-parameters of a config.json under other keys, tensors under
// other names (gguf_architectures.h).

#include <memory>

#include "core/io/gguf.h"
#include "core/model/config_reader.h"
#include "core/model/formats/renamed_weights.h"

namespace headscope {

/// The config.json that the file's keys amount to; Errors about a value name the file's key. Throws Error on an unknown
/// architecture, and on keys of it that would change numbers and are not understood.
ConfigReader gguf_config(const GgufFile& file);

/// The weights under the family's names. Throws Error naming tensors that the architecture has no place for.
std::unique_ptr<WeightSource> gguf_weights(const std::shared_ptr<const GgufFile>& file);

}  // namespace headscope
