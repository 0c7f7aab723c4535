#pragma once
// The .bin files of llama2.c (github.com/karpathy/llama2.c, export.py, version 0): seven integers, then every weight as
// float32, all layers of a kind one after another. There are no names in it; the tensors here are called as run.c calls
// them, a layer at a time: "wq.0".

#include <filesystem>

#include "core/io/tensor_file.h"

namespace headscope {

struct Llama2cHeader {
  int dim = 0, hidden_dim = 0, layers = 0, heads = 0, kv_heads = 0, vocab = 0, context = 0;
  bool shares_classifier = true;  ///< the embedding is also the unembedding; written as the sign of vocab
  /// Throws Error naming the field when it is absurd. Newer versions, which begin with "ak42", are refused by number.
  static Llama2cHeader read(const InputFile& file);
};

/// Whether the first bytes can be such a header, whose sizes are those of the file.
bool looks_like_llama2c(const InputFile& file);

/// Throws Error when the header is absurd or the file has another size than it says.
TensorFile open_llama2c(const std::filesystem::path& path);

}  // namespace headscope
