#pragma once
// Safetensors files (github.com/huggingface/safetensors): 8-byte little-endian header length, JSON header, raw data.
// Checked before anything is believed; tensors are read when they are asked for, into memory of their own; written as a
// stream, one tensor at a time.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/tensor/tensor.h"

namespace headscope {

enum class DType { f32, f16, bf16, f64, i64, i32, i16, i8, u8, boolean };
std::size_t dtype_size(DType type);
std::string dtype_name(DType type);  ///< "F32", as in the file

struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0, size = 0;  ///< its bytes in the file
  std::shared_ptr<const InputFile> file;
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

/// The tensors of one file, or of all shards that a `*.safetensors.index.json` names. Immutable, thread-safe.
class SafetensorsFile {
 public:
  /// A .safetensors file, an index .json, or a model folder (model.safetensors, else model.safetensors.index.json, else
  /// the only *.safetensors in it). Throws Error on truncated or lying files: header length, JSON, dtype, shape × dtype
  /// ≠ bytes, offsets outside the file or overlapping, duplicate names, a shard that lacks what the index promises.
  static SafetensorsFile open(const std::filesystem::path& path);

  const std::map<std::string, TensorEntry>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool contains(const std::string& name) const { return tensors_.count(name) > 0; }
  /// Throws Error naming the file and the nearest names when absent.
  const TensorEntry& entry(const std::string& name) const;
  /// Read now, as float32. Throws Error on integer dtypes, rank > 4, or a file that was cut short since it was opened.
  Tensor tensor(const std::string& name) const;
  /// Called by every tensor() before it reads, with the tensor's size in the file: for progress. May throw to stop.
  void watch(std::function<void(std::size_t bytes)> reading) { reading_ = std::move(reading); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::map<std::string, TensorEntry> tensors_;
  std::map<std::string, std::string> metadata_;
  std::function<void(std::size_t)> reading_;
};

/// Reads any float dtype as float32 (F16 and BF16 exactly, F64 rounded).
Tensor to_float(const TensorEntry& entry);
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);  ///< round to nearest even

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
