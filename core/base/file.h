#pragma once
// Files: reads at any place, whole-file reads, and writes that are never left half done. Nothing is mapped into memory:
// a map of a file that another program cuts short ends the process with SIGBUS, where a read can say what happened.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace headscope {

/// A regular file held open. Replacing it by name changes nothing here; its bytes are copied out where they are wanted.
/// Thread-safe (const).
class InputFile {
 public:
  /// Throws Error when the file is missing, unreadable, or no regular file (a folder, pipe or device). Never waits.
  static std::shared_ptr<const InputFile> open(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::uint64_t size() const { return size_; }  ///< bytes when it was opened
  const std::filesystem::path& path() const { return path_; }
  /// Fills `out` with the bytes from `offset` on. Throws Error when the file has meanwhile become shorter than that.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  std::string text(std::uint64_t offset, std::size_t size) const;

 private:
  InputFile(std::filesystem::path path, int descriptor, std::uint64_t size);
  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t size_;
};

/// The whole of a regular file. Throws Error as InputFile does, and when it is larger than `limit` bytes.
std::string read_file(const std::filesystem::path& path, std::size_t limit = std::size_t{1} << 30);
/// What a person names to be read once: a file, or also a pipe or device ("<(command)", /dev/stdin), whose writer is
/// waited for. A named pipe that nobody writes to is empty. Throws Error as read_file() does.
std::string read_input(const std::filesystem::path& path, std::size_t limit);

/// Runs `write` on a stream beside `path`, then renames it over `path`: a reader sees the old file or the new one. A
/// symbolic link stays one: what it points at is written, there already or not. An old file's permissions are kept.
/// On any failure the temporary file is removed and Error is thrown.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
/// Asked before what takes long: throws the Error that write_file_atomically() would, where no file of that name can be
/// made (its folder is missing or may not be written to, it is a folder itself, a pipe or a device). Leaves all as it
/// is.
void expect_writable(const std::filesystem::path& path);
/// The same of a folder that files are written into, which is made where it is not there.
void expect_writable_folder(const std::filesystem::path& folder);

}  // namespace headscope
