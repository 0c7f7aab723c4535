#include "core/model/formats/model_files.h"

#include "core/base/error.h"
#include "core/model/formats/few_bits.h"
#include "core/model/formats/gguf_dialect.h"
#include "core/model/formats/llama2c_dialect.h"
#include "core/model/formats/lora_adapter.h"
#include "core/model/formats/transformer_lens_dialect.h"

namespace headscope {

using Format = ModelLocation::Format;

ConfigReader config_of(const ModelLocation& model) {
  if (model.format == Format::gguf) return gguf_config(GgufFile::open(model.weights));
  if (model.format == Format::llama2c) return llama2c_config(model.weights);
  // A HookedTransformer's configuration names no type of model, and may lie inside the file or nowhere.
  const std::filesystem::path beside = model.folder / "config.json";
  std::error_code ignored;
  const bool there = std::filesystem::exists(beside, ignored);
  if (!there && is_adapter(model.folder))
    throw Error(model.folder.string(), "a model that the adapter changes", model.trouble);
  if (there || model.format == Format::none) {
    ConfigReader json = ConfigReader::open(beside);
    if (model.format == Format::none || json.has("model_type")) return json;
  }
  if (const TensorFile file = open_tensors(model); is_transformer_lens(file))
    return transformer_lens_config(model, file);
  return ConfigReader::open(beside);
}

namespace {
ModelFiles open_base(const ModelLocation& model) {
  if (model.format == Format::gguf) {
    const auto file = std::make_shared<GgufFile>(GgufFile::open(model.weights));
    return {file, gguf_weights(file)};
  }
  const auto file = std::make_shared<TensorFile>(open_tensors(model));
  if (model.format == Format::llama2c) return {file, llama2c_weights(file)};
  const std::filesystem::path beside = model.folder / "config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(beside, ignored)) return {file, folder_weights(file, nullptr)};
  const ConfigReader config = ConfigReader::open(beside);
  return {file, folder_weights(file, &config)};
}
}  // namespace

ModelFiles ModelFiles::open(const ModelLocation& model) {
  ModelFiles files = open_base(model);
  if (!model.adapter.empty())
    files.weights = std::make_unique<AdaptedWeights>(std::move(files.weights), LoraAdapter::open(model.adapter));
  return files;
}

}  // namespace headscope
