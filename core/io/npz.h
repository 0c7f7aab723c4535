#pragma once
// NumPy files: .npz (a zip archive of arrays, stored or deflated, as numpy.savez and savez_compressed write) and single
// .npy. Used for attention that other programs captured, and for reference results in tests.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/io/npy.h"

namespace headscope {

/// The arrays of one file, inflated when asked for. Immutable, thread-safe.
class NpzFile {
 public:
  /// Throws Error on a file that is neither .npz nor .npy, a broken archive, or array names that appear twice.
  /// A .npy file is one array, named after the file.
  static NpzFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_->path(); }
  const std::vector<std::string>& names() const { return names_; }  ///< without ".npy", in the order of the archive
  bool contains(const std::string& name) const;

  /// Throws Error when absent (naming the nearest), encrypted, of a checksum that does not match, or larger than
  /// `limit` bytes or the free memory. The inflated size is believed only as far as the compressed one can reach.
  NpyArray array(const std::string& name, std::size_t limit = std::size_t{1} << 32) const;
  Tensor tensor(const std::string& name) const { return array(name).tensor(); }
  std::vector<std::int64_t> integers(const std::string& name) const { return array(name).integers(); }
  std::vector<std::string> strings(const std::string& name) const { return array(name).strings(); }

 private:
  std::shared_ptr<const InputFile> file_;
  std::vector<std::string> names_;
  std::vector<std::size_t> members_;  ///< place of each name in the archive; empty for a .npy
};

}  // namespace headscope
