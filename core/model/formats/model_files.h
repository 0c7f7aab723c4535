#pragma once
// A model on disk in any format, in the terms of its family's Hugging Face folder: what its config.json says or would
// say, and its weights under the names that they have or would have there. A new format is a reader in core/io, a
// dialect beside this, and a line in each of both functions.

#include <filesystem>
#include <memory>

#include "core/io/model_location.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"

namespace headscope {

/// Throws Error as ConfigReader::open, or as the format's reader.
ConfigReader config_of(const ModelLocation& model);

struct ModelFiles {
  std::shared_ptr<TensorFile> tensors;  ///< as they lie in the file
  std::unique_ptr<WeightSource> weights;
  /// Throws Error when there are no weights, or as the format's reader.
  static ModelFiles open(const ModelLocation& model);
};

}  // namespace headscope
