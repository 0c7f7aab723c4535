#include "core/model/family.h"

#include <array>

#include "core/base/error.h"
#include "core/model/weight_reader.h"

namespace headscope {

std::span<const Family> families() {
  static const std::array<Family, 2> known{gpt2_family(), llama_family()};
  return known;
}

const Family& family(std::string_view model_type, const std::string& where) {
  std::string names;
  for (const Family& candidate : families()) {
    if (candidate.model_type == model_type) return candidate;
    names += (names.empty() ? "" : ", ") + std::string(candidate.model_type);
  }
  throw Error(where + ": model_type", "one of " + names, "\"" + std::string(model_type) + "\"",
              "convert the model to one of these layouts, or trace another model");
}

RawWeights read_weights(const SafetensorsFile& file, const ModelConfig& config) {
  return read_weights(FileWeights(file), config);
}

RawWeights read_weights(const WeightSource& source, const ModelConfig& config) {
  return family(config.family, source.where()).read_weights(source, config);
}

std::string write_config(const ModelConfig& config) {
  return family(config.family, config.name).write_config(config);
}

}  // namespace headscope
