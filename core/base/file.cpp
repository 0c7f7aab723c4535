#include "core/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <ostream>
#include <system_error>

#include "core/base/error.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

/// Closes on every way out.
struct Descriptor {
  int fd;
  explicit Descriptor(int fd_) : fd(fd_) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

Descriptor open_to_read(const fs::path& path, int flags = 0) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) {
    const int error = errno;
    throw Error(path.string(), "a readable file", reason(error),
                error == ENOENT ? "check the path; it is relative to the folder the program was started in" : "");
  }
  return Descriptor(fd);
}

struct stat status(const Descriptor& file, const fs::path& path) {
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) throw Error(path.string(), "a readable file", reason(errno));
  if (S_ISDIR(info.st_mode)) throw Error(path.string(), "a file", "a folder");
  return info;
}

/// A name beside `target` that no other file, process or thread uses; created empty.
fs::path create_beside(const fs::path& target) {
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    fs::path path = target;
    path += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.fd >= 0) return path;
    if (errno != EEXIST)
      throw Error(target.string(), "a writable place", reason(errno),
                  "does the folder exist, and may you write to it?");
  }
  throw Error(target.string(), "a free temporary name beside it", "100 names taken", "remove old *.part-* files");
}

/// Data on the disk before the name points at it: otherwise a power cut can leave the new name on an empty file.
void flush_to_disk(const fs::path& path, int flags) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  // Some file systems cannot sync (EINVAL, EROFS on special mounts); a real input/output error must not pass.
  if (file.fd >= 0 && ::fsync(file.fd) != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT))
    throw Error(path.string(), "data written to the disk", reason(errno));
}

/// Removes the temporary file unless it was renamed into place.
struct Remover {
  fs::path path;
  bool armed = true;
  explicit Remover(fs::path path_) : path(std::move(path_)) {}
  ~Remover() {
    std::error_code ignored;
    if (armed) fs::remove(path, ignored);
  }
  Remover(const Remover&) = delete;
  Remover& operator=(const Remover&) = delete;
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const fs::path& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not hang; for regular files it has no effect.
  const Descriptor file = open_to_read(path, O_NONBLOCK);
  const struct stat info = status(file, path);
  if (!S_ISREG(info.st_mode)) throw Error(path.string(), "a regular file", "a pipe or device");

  std::shared_ptr<MappedFile> mapped(new MappedFile);
  mapped->path_ = path;
  const std::size_t size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return mapped;  // mmap refuses a length of zero
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) throw Error(path.string(), "a file that can be mapped into memory", reason(errno));
  mapped->data_ = static_cast<const std::byte*>(address);
  mapped->size_ = size;
  return mapped;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::string read_file(const fs::path& path, std::size_t limit) {
  const Descriptor file = open_to_read(path);
  const struct stat info = status(file, path);
  const auto too_large = [&](const std::string& found) {
    return Error(path.string(), "at most " + std::to_string(limit) + " bytes", found);
  };
  const std::size_t stated = info.st_size > 0 ? static_cast<std::size_t>(info.st_size) : 0;
  if (stated > limit) throw too_large(std::to_string(stated));

  // The stated size is only a start: pipes say 0, and a file may grow while it is read.
  std::string bytes;
  std::size_t filled = 0;
  bytes.resize(std::min(limit, std::max<std::size_t>(stated, 4096)) + 1);
  while (true) {
    const ssize_t got = ::read(file.fd, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(path.string(), "a readable file", reason(errno));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    if (filled > limit) throw too_large("more");
    if (filled == bytes.size()) bytes.resize(std::min(limit, 2 * bytes.size()) + 1);
  }
  bytes.resize(filled);
  return bytes;
}

void write_file_atomically(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  std::error_code failure;
  // A rename would replace a symbolic link by a file; what it points at is meant.
  fs::path target = path;
  if (fs::is_symlink(fs::symlink_status(path, failure))) target = fs::weakly_canonical(path, failure);
  if (target.filename().empty()) throw Error(path.string(), "the name of a file to write", "a folder or a broken link");
  const fs::file_status existing = fs::status(target, failure);
  // Renaming over a device or pipe would destroy it.
  if (fs::exists(existing) && !fs::is_regular_file(existing))
    throw Error(path.string(), "the name of a file to write",
                fs::is_directory(existing) ? "a folder" : "a pipe or device");

  Remover part(create_beside(target));
  if (fs::exists(existing)) fs::permissions(part.path, existing.permissions(), failure);
  errno = 0;
  std::ofstream out(part.path, std::ios::binary | std::ios::trunc);
  if (out) write(out);
  out.close();
  if (!out) {
    const int error = errno;
    throw Error(path.string(), "all bytes written", error ? reason(error) : "a failed write", "is the disk full?");
  }
  flush_to_disk(part.path, 0);
  fs::rename(part.path, target, failure);
  if (failure) throw Error(path.string(), "a replaceable file", failure.message());
  part.armed = false;
  const fs::path folder = target.parent_path();
  flush_to_disk(folder.empty() ? fs::path(".") : folder, O_DIRECTORY);  // the new name itself
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  write_file_atomically(
      path, [&](std::ostream& out) { out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())); });
}

}  // namespace headscope
