#include "core/hub/cache_entry.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/io/model_location.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

void make_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw Error(folder.string(), "a folder that can be made", failed.message(),
                "HF_HOME or HF_HUB_CACHE names another place for the cache");
}

[[noreturn]] void refuse_write(const fs::path& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(path.string(), "room for all of the file", reason(error),
              full ? "what has come stays: make room and pull again, it goes on from there" : "");
}

}  // namespace

CacheEntry::CacheEntry(fs::path cache, const std::string& model)
    : cache_(std::move(cache)), folder_(cache_ / cache_entry_name(model)) {}

fs::path CacheEntry::incomplete(const std::string& tag) const {
  return folder_ / "blobs" / (tag + ".incomplete");
}

fs::path CacheEntry::lock(const std::string& tag) const {
  return cache_ / ".locks" / folder_.filename() / (tag + ".lock");
}

void CacheEntry::make_folders(const std::string& commit, const std::string& file) const {
  make_folder(folder_ / "blobs");
  make_folder(cache_ / ".locks" / folder_.filename());
  make_folder((snapshot(commit) / file).parent_path());
}

void CacheEntry::link(const std::string& commit, const std::string& file, const std::string& tag) const {
  const fs::path at = snapshot(commit) / file;
  const fs::path to = blob(tag).lexically_relative(at.parent_path());
  std::error_code failed;
  if (fs::is_symlink(fs::symlink_status(at, failed)) || fs::exists(at, failed)) {
    if (fs::equivalent(at, blob(tag), failed)) return;
    fs::remove(at, failed);  // a link to what is gone
  }
  fs::create_symlink(to, at, failed);
  if (!failed) return;
  std::error_code not_moved;
  fs::rename(blob(tag), at, not_moved);
  if (not_moved) throw Error(at.string(), "a link to " + to.string(), failed.message());
}

void CacheEntry::write_ref(const std::string& revision, const std::string& commit) const {
  if (revision == commit) return;
  const fs::path file = folder_ / "refs" / revision;
  make_folder(file.parent_path());
  std::error_code gone;
  if (fs::is_regular_file(file, gone) && read_file(file) == commit) return;
  write_file_atomically(file, commit);
}

CacheLock::CacheLock(const fs::path& file, const std::stop_token& stop, const std::function<void()>& waiting) {
  const auto refuse = [&] {
    const int error = errno;
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    throw Error(file.string(), "a file that can be locked", reason(error), "may you write into its folder?");
  };
  // Readable for others as the package makes it.
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) refuse();
  for (bool told = false; ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0;) {
    if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK) return;  // a file system without locks
    if (errno != EWOULDBLOCK && errno != EINTR) refuse();
    if (!std::exchange(told, true) && waiting) waiting();
    std::mutex lock;
    std::condition_variable_any stopped;
    std::unique_lock hold(lock);
    stopped.wait_for(hold, stop, std::chrono::milliseconds(100), [] { return false; });
    if (stop.stop_requested()) {
      ::close(std::exchange(descriptor_, -1));
      throw Cancelled();
    }
  }
}

CacheLock::~CacheLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

GrowingFile::GrowingFile(fs::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) throw Error(path_.string(), "a file that can be written", reason(errno));
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    throw Error(path_.string(), "a regular file", "something else");
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

GrowingFile::~GrowingFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (size_ == 0) ::unlink(path_.c_str());
}

void GrowingFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse_write(path_, errno);
    size_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void GrowingFile::cut(std::uint64_t size) {
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) refuse_write(path_, errno);
  size_ = size;
}

void GrowingFile::finish(const fs::path& name) {
  // Some file systems cannot sync.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) refuse_write(path_, errno);
  std::error_code failed;
  fs::rename(path_, name, failed);
  if (failed) throw Error(name.string(), "a name that is free", failed.message());
  ::close(std::exchange(descriptor_, -1));
}

}  // namespace headscope
