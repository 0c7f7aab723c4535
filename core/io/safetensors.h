#pragma once
// Safetensors files (github.com/huggingface/safetensors): 8-byte little-endian header length, JSON header, raw data.
// Checked before anything is believed; tensors are read when they are asked for, into memory of their own; written as a
// stream, one tensor at a time.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/io/tensor_file.h"

namespace headscope {

/// The tensors of one file, or of all shards that a `*.safetensors.index.json` names.
class SafetensorsFile : public TensorFile {
 public:
  /// A .safetensors file, an index .json, or a folder (model.safetensors, else model.safetensors.index.json, else the
  /// only *.safetensors in it). Throws Error on truncated or lying files: header length, JSON, dtype, shape × dtype ≠
  /// bytes, offsets outside the file or overlapping, duplicate names, a shard that lacks what the index promises.
  static SafetensorsFile open(const std::filesystem::path& path);

 private:
  explicit SafetensorsFile(TensorFile file) : TensorFile(std::move(file)) {}
};

/// Writes a file whose tensors are produced one at a time, so that a large trace never exists twice in memory.
class SafetensorsWriter {
 public:
  using Produce = std::function<void(std::ostream&)>;  ///< must write exactly the declared number of bytes
  void add(std::string name, DType dtype, std::vector<std::int64_t> shape, Produce produce);
  void add(std::string name, const Tensor& tensor);  ///< F32
  void metadata(std::string key, std::string value);
  /// Atomic (write beside, then rename). Calls `progress(done, total)` in bytes between tensors when given.
  void write(const std::filesystem::path& path,
             const std::function<void(std::size_t, std::size_t)>& progress = {}) const;

 private:
  struct Item {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
    Produce produce;
  };
  std::vector<Item> items_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace headscope
