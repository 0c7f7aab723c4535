#pragma once
// Files of named tensors, whatever their format: what a reader (safetensors, PyTorch, GGUF, llama2.c) found, checked
// before anything is believed. Tensors are read when they are asked for, into memory of their own: as float32, or as
// they are stored.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/io/dtype.h"
#include "core/tensor/tensor.h"

namespace headscope {

struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0, size = 0;  ///< its bytes in the file
  std::shared_ptr<const InputFile> file;
  /// In items, outermost axis first, of a tensor that was saved as a view (PyTorch keeps transposed ones so); `size`
  /// then reaches from its first item to its last. Empty: rows one after another.
  std::vector<std::int64_t> strides = {};
  std::int64_t elements() const;
  /// REQUIRES out.size() == size. Throws Error when the file has meanwhile been cut short.
  void read(std::span<std::byte> out) const;
  /// All of it, as items of type T of the dtype's size.
  template <class T>
  std::vector<T> items() const {
    std::vector<T> out(size / sizeof(T));
    read(std::as_writable_bytes(std::span(out)));
    return out;
  }
};

/// Immutable but for watch(), thread-safe.
class TensorFile {
 public:
  using Tensors = std::map<std::string, TensorEntry>;
  using Metadata = std::map<std::string, std::string>;
  TensorFile(std::filesystem::path path, std::string format, Tensors tensors, Metadata metadata = {});

  const std::filesystem::path& path() const { return path_; }
  const std::string& format() const { return format_; }  ///< "safetensors", "PyTorch", "GGUF v3", "llama2.c"
  const Tensors& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }
  bool contains(const std::string& name) const { return tensors_.count(name) > 0; }
  /// Throws Error naming the file and the nearest names when absent.
  const TensorEntry& entry(const std::string& name) const;
  /// Read now, as float32. Throws Error on integer dtypes, rank > 4, or a file that was cut short since it was opened.
  Tensor tensor(const std::string& name) const;
  /// The same of a weight: matrices of a type that products read as it is stored (stored_type()) are kept so.
  Tensor weight(const std::string& name) const;
  /// Called by every tensor() before it reads, with the tensor's size in the file: for progress. May throw to stop.
  void watch(std::function<void(std::size_t bytes)> reading) { reading_ = std::move(reading); }
  /// The same for whoever reads an entry by itself.
  void reads(const TensorEntry& entry) const {
    if (reading_) reading_(entry.size);
  }

 private:
  std::filesystem::path path_;
  std::string format_;
  Tensors tensors_;
  Metadata metadata_;
  std::function<void(std::size_t)> reading_;
};

/// Reads any float dtype as float32 (F64 rounded, blocks as their format says, all others exactly).
Tensor to_float(const TensorEntry& entry);

/// The tensors of all shards that a `*.index.json` names, each opened by `open` once. Throws Error on an index that is
/// none, names files elsewhere, or promises what a shard lacks.
TensorFile open_index(const std::filesystem::path& index,
                      const std::function<TensorFile(const std::filesystem::path&)>& open);

}  // namespace headscope
