#include "core/base/file.h"

#include <fcntl.h>
#include <poll.h>
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

/// O_NONBLOCK: opening a pipe that nobody writes to must not wait for ever. A regular file answers so only while
/// another program holds a lease on it (a file server): it is asked to let go, and waited for.
Descriptor open_to_read(const fs::path& path) {
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY;
  int fd = ::open(path.c_str(), flags | O_NONBLOCK);
  std::error_code ignored;
  if (fd < 0 && errno == EWOULDBLOCK && fs::is_regular_file(path, ignored)) fd = ::open(path.c_str(), flags);
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

/// Bytes read, 0 at the end; waits for a writer of a pipe that has none ready.
std::size_t read_some(const Descriptor& file, const fs::path& path, char* to, std::size_t room) {
  while (true) {
    const ssize_t got = ::read(file.fd, to, room);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN) {
      pollfd ready{file.fd, POLLIN, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      throw Error(path.string(), "a readable file", reason(errno));
    }
  }
}

std::string read_whole(const Descriptor& file, const struct stat& info, const fs::path& path, std::size_t limit) {
  const auto too_large = [&](const std::string& found) {
    return Error(path.string(), "at most " + std::to_string(limit) + " bytes", found);
  };
  const std::size_t stated = info.st_size > 0 ? static_cast<std::size_t>(info.st_size) : 0;
  if (stated > limit) throw too_large(std::to_string(stated));

  // The stated size is only a start: pipes say 0, and a file may grow while it is read.
  std::string bytes;
  std::size_t filled = 0;
  bytes.resize(std::min(limit, std::max<std::size_t>(stated, 4096)) + 1);
  while (const std::size_t got = read_some(file, path, bytes.data() + filled, bytes.size() - filled)) {
    filled += got;
    if (filled > limit) throw too_large("more");
    if (filled == bytes.size()) bytes.resize(std::min(limit, 2 * bytes.size()) + 1);
  }
  bytes.resize(filled);
  return bytes;
}

/// What a chain of symbolic links leads to, whether that is there or not.
fs::path behind_links(const fs::path& path) {
  fs::path at = path;
  std::error_code failure;
  for (int links = 0; fs::is_symlink(fs::symlink_status(at, failure)); ++links) {
    const fs::path to = fs::read_symlink(at, failure);
    if (failure || links == 40)
      throw Error(path.string(), "the name of a file to write", links == 40 ? "links in a circle" : failure.message());
    at = to.is_absolute() ? to : at.parent_path() / to;
  }
  return at;
}

/// What a file of the name `path` would take the place of. Throws Error where that is no file.
struct Target {
  fs::path path;
  fs::file_status existing;
};
Target target_of(const fs::path& path) {
  std::error_code failure;
  Target of{behind_links(path), {}};  // a rename would replace the link by a file
  if (of.path.filename().empty())
    throw Error(path.string(), "the name of a file to write", "a folder or a broken link");
  of.existing = fs::status(of.path, failure);
  // Renaming over a device or pipe would destroy it.
  if (fs::exists(of.existing) && !fs::is_regular_file(of.existing))
    throw Error(path.string(), "the name of a file to write",
                fs::is_directory(of.existing) ? "a folder" : "a pipe or device");
  return of;
}

/// A name beside `target` that no other file, process or thread uses; created empty.
fs::path create_beside(const fs::path& target) {
  static std::atomic<unsigned> counter{0};
  fs::path beginning = target;
  for (int attempt = 0; attempt < 100; ++attempt) {
    fs::path path = beginning;
    path += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.fd >= 0) return path;
    const int error = errno;
    struct stat there {};
    if (error == ENAMETOOLONG && beginning == target && (::stat(target.c_str(), &there) == 0 || errno == ENOENT)) {
      beginning = target.parent_path() / ".headscope";  // the name itself is short enough, with nothing behind it
      continue;
    }
    if (error == ENAMETOOLONG) throw Error(target.string(), "a shorter name", reason(error));
    if (error != EEXIST)
      throw Error(target.string(), "a writable place", reason(error),
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

InputFile::InputFile(fs::path path, int descriptor, std::uint64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

InputFile::~InputFile() {
  ::close(descriptor_);
}

std::shared_ptr<const InputFile> InputFile::open(const fs::path& path) {
  Descriptor file = open_to_read(path);
  const struct stat info = status(file, path);
  if (!S_ISREG(info.st_mode)) throw Error(path.string(), "a regular file", "a pipe or device");
  std::shared_ptr<const InputFile> opened(new InputFile(path, file.fd, static_cast<std::uint64_t>(info.st_size)));
  file.fd = -1;  // it has another owner now
  return opened;
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  for (std::size_t filled = 0; filled < out.size();) {
    const ssize_t got =
        ::pread(descriptor_, out.data() + filled, out.size() - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(path_.string(), "a readable file", reason(errno));
    if (got == 0)
      throw Error(path_.string(), "the file of " + std::to_string(size_) + " bytes that was opened",
                  "its end at byte " + std::to_string(offset + filled),
                  "another program has cut it short; open it again when that is done");
    filled += static_cast<std::size_t>(got);
  }
}

std::string InputFile::text(std::uint64_t offset, std::size_t size) const {
  std::string bytes(size, '\0');
  read(offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::string read_file(const fs::path& path, std::size_t limit) {
  const Descriptor file = open_to_read(path);
  const struct stat info = status(file, path);
  if (!S_ISREG(info.st_mode)) throw Error(path.string(), "a regular file", "a pipe or device");
  return read_whole(file, info, path, limit);
}

std::string read_input(const fs::path& path, std::size_t limit) {
  const Descriptor file = open_to_read(path);
  return read_whole(file, status(file, path), path, limit);
}

void expect_writable(const fs::path& path) {
  const Remover made(create_beside(target_of(path).path));
}

void expect_writable_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw Error(folder.string(), "a folder that can be made", failure.message(), "choose another");
  const Remover made(create_beside(folder / "file"));
}

void write_file_atomically(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  std::error_code failure;
  const auto [target, existing] = target_of(path);
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
