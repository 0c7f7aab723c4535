#pragma once
// The arrays of a capture by name, whichever file holds them: NumPy's (.npz, .npy) or safetensors. Private to core/io.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/io/npy.h"
#include "core/io/tensor_file.h"

namespace headscope {

class CaptureArrays {
 public:
  virtual ~CaptureArrays() = default;
  virtual const std::filesystem::path& path() const = 0;
  virtual std::vector<std::string> names() const = 0;
  virtual bool contains(const std::string& name) const = 0;
  /// Throws Error when it is absent, cut short, or larger than the free memory.
  virtual NpyArray array(const std::string& name) const = 0;
  /// Whether strings() has it.
  virtual bool is_text(const std::string& name) const = 0;
  /// Text, which safetensors has no type for: there a JSON list (or one text) of this name in __metadata__.
  virtual std::vector<std::string> strings(const std::string& name) const = 0;
};

/// Throws Error as NpzFile::open() does.
std::unique_ptr<CaptureArrays> numpy_arrays(const std::filesystem::path& path);
std::unique_ptr<CaptureArrays> safetensors_arrays(TensorFile file);

}  // namespace headscope
