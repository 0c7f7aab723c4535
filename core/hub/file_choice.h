#pragma once
// Which files of a model are fetched: what Headscope reads, and no other framework's copy of the same weights.

#include <string>
#include <vector>

#include "core/hub/hub_client.h"

namespace headscope {

struct FileChoice {
  std::vector<HubFile> files;        ///< small ones first, weights last
  std::vector<std::string> remarks;  ///< what is missing among them, in words
};

/// With patterns ("*.gguf", "onnx/*"; as a shell's, "*" goes past "/") the files that one of them means. Without any,
/// those of the model's own folder: configuration, tokenizer, and of the weights the first of these that it has:
/// model.safetensors, the shards of its index, other *.safetensors, pytorch_model.bin, its shards, the one *.gguf.
/// Throws Error where that is nothing, or several GGUF files of which one has to be named.
FileChoice choose_files(const HubModel& model, const std::vector<std::string>& patterns);

}  // namespace headscope
