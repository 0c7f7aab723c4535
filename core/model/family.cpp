#include "core/model/family.h"

#include <vector>

#include "core/base/error.h"
#include "core/model/config_reader.h"
#include "core/model/families/all.h"
#include "core/model/weight_reader.h"

namespace headscope {

#define HEADSCOPE_DECLARE(id) Family id##_family();
HEADSCOPE_FAMILIES(HEADSCOPE_DECLARE)
#undef HEADSCOPE_DECLARE

std::span<const Family> families() {
#define HEADSCOPE_CALL(id) id##_family(),
  static const std::vector<Family> known{HEADSCOPE_FAMILIES(HEADSCOPE_CALL)};
#undef HEADSCOPE_CALL
  return known;
}

const Family& family(std::string_view model_type, const std::string& where) {
  std::string names;
  for (const Family& candidate : families()) {
    if (candidate.model_type == model_type) return candidate;
    names += (names.empty() ? "" : ", ") + candidate.model_type;
  }
  throw Error(where + ": model_type", "one of " + names, "\"" + std::string(model_type) + "\"",
              "convert the model to one of these layouts, or trace another model");
}

RawWeights read_weights(const TensorFile& file, const ModelConfig& config) {
  return read_weights(FileWeights(file), config);
}

RawWeights read_weights(const WeightSource& source, const ModelConfig& config) {
  RawWeights weights = family(config.family, source.where()).read_weights(source, config);
  source.finish(config, weights);
  return weights;
}

RawWeights read_model_weights(const WeightSource& file, ModelConfig& config) {
  RawWeights weights = read_weights(file, config);
  if (weights.untied) config.tied_embeddings = false;
  return weights;
}

std::string write_config(const ModelConfig& config) {
  std::string text = family(config.family, config.name).write_config(config);
  if (config.input_bits == 0) return text;
  ConfigWriter json = ConfigWriter::parse(text), rounding;  // of weights as they are here: bits_of_inputs()
  rounding.put("quant_method", "bitnet");
  rounding.put("linear_class", "autobitlinear");
  rounding.put("quantization_mode", "offline");
  json.put("quantization_config", rounding);
  return json.text();
}

}  // namespace headscope
