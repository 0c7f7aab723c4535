#include "core/model/formats/model_files.h"

#include "core/model/formats/gguf_dialect.h"
#include "core/model/formats/llama2c_dialect.h"
#include "core/model/weight_reader.h"

namespace headscope {

using Format = ModelLocation::Format;

ConfigReader config_of(const ModelLocation& model) {
  if (model.format == Format::gguf) return gguf_config(GgufFile::open(model.weights));
  if (model.format == Format::llama2c) return llama2c_config(model.weights);
  return ConfigReader::open(model.folder / "config.json");
}

ModelFiles ModelFiles::open(const ModelLocation& model) {
  if (model.format == Format::gguf) {
    const auto file = std::make_shared<GgufFile>(GgufFile::open(model.weights));
    return {file, gguf_weights(file)};
  }
  const auto file = std::make_shared<TensorFile>(open_tensors(model));
  if (model.format == Format::llama2c) return {file, llama2c_weights(file)};
  return {file, std::make_unique<FileWeights>(*file)};
}

}  // namespace headscope
