#pragma once
// Files: read-only memory maps, whole-file reads, and writes that are never left half done.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace headscope {

/// A file mapped read-only. Shared by everything that points into it; unmapped with the last owner. Thread-safe
/// (const).
class MappedFile {
 public:
  /// Throws Error when the file is missing, a directory, or unreadable. An empty file maps to an empty span.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  MappedFile() = default;
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The whole file as a string. Throws Error (missing, directory, unreadable, or larger than `limit` bytes).
std::string read_file(const std::filesystem::path& path, std::size_t limit = std::size_t{1} << 30);

/// Runs `write` on a stream beside `path`, then renames it over `path`: a reader sees the old file or the new one.
/// On any failure the temporary file is removed and Error is thrown.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace headscope
