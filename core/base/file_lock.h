#pragma once
// One process at a time: a small file that says who is at work, held by the operating system's lock, so that it falls
// free with the process however that ends.

#include <filesystem>
#include <memory>
#include <string>

namespace headscope {

class FileLock {
 public:
  /// Takes `file` ("12345 host 2026-01-31 12:00:00Z": process, machine, since when), made where it is missing; one that
  /// a dead process of this machine left is taken over. nullptr when somebody else holds it, and `holder` then says
  /// who: "process 12345 on host since …". One of another machine counts as held, since nobody here can tell. Throws
  /// Error when the file cannot be made.
  static std::unique_ptr<FileLock> take(const std::filesystem::path& file, std::string* holder = nullptr);
  ~FileLock();  ///< removes the file
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(std::filesystem::path file, int descriptor) : file_(std::move(file)), descriptor_(descriptor) {}
  std::filesystem::path file_;
  int descriptor_;
};

}  // namespace headscope
