#pragma once
// llama2.c's files as a Llama.

#include <memory>

#include "core/io/llama2c.h"
#include "core/model/config_reader.h"
#include "core/model/formats/renamed_weights.h"

namespace headscope {

/// The config.json of the header, and of what run.c takes for granted: rotary base 10000, epsilon 1e-5.
ConfigReader llama2c_config(const std::filesystem::path& path);
std::unique_ptr<WeightSource> llama2c_weights(std::shared_ptr<const TensorFile> file);

}  // namespace headscope
