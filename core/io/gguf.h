#pragma once
// GGUF versions 2 and 3, the files of llama.cpp (github.com/ggml-org/ggml/blob/master/docs/gguf.md): keys with values,
// then tensors in blocks of numbers that share scales. Tensors have the order of axes that all formats here have, the
// reverse of the file's.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/io/tensor_file.h"

namespace headscope {

/// Whole numbers of every width as 64 bits; u64 beyond 2^63 as 2^63 − 1.
using GgufValue = std::variant<bool, std::int64_t, double, std::string, std::vector<bool>, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<std::string>>;

class GgufFile : public TensorFile {
 public:
  /// Throws Error naming file, key or tensor on files that are cut short or lie: counts and lengths beyond the file's
  /// end, offsets outside it or over one another, types that are not read, names twice.
  static GgufFile open(const std::filesystem::path& path);

  using Keys = std::map<std::string, GgufValue>;
  const Keys& keys() const { return keys_; }
  /// The value of a key, null when it is absent. Throws Error when it has another type.
  template <class T>
  const T* find(const std::string& key) const {
    const auto found = keys_.find(key);
    if (found == keys_.end()) return nullptr;
    const T* const value = std::get_if<T>(&found->second);
    if (!value) wrong_type(key);
    return value;
  }

 private:
  GgufFile(TensorFile file, Keys keys) : TensorFile(std::move(file)), keys_(std::move(keys)) {}
  [[noreturn]] void wrong_type(const std::string& key) const;
  Keys keys_;
};

bool looks_like_gguf(const InputFile& file);

}  // namespace headscope
