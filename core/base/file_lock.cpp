#include "core/base/file_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

std::string machine() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "?";
  return name.data();
}

std::string read_start(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

struct Holder {
  long process = 0;
  std::string machine, since;
};

std::optional<Holder> parse(const std::string& text) {
  std::istringstream words(text);
  Holder holder;
  if (!(words >> holder.process >> holder.machine) || holder.process <= 0) return std::nullopt;
  std::getline(words >> std::ws, holder.since);
  return holder;
}

/// The file is still the one that its name means: its last holder may have removed it while we waited for it.
bool same_file(int descriptor, const fs::path& file) {
  struct stat held {
  }, named{};
  return ::fstat(descriptor, &held) == 0 && ::stat(file.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

}  // namespace

std::unique_ptr<FileLock> FileLock::take(const fs::path& file, std::string* holder) {
  for (;;) {
    const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0)
      throw Error(file.string(), "a file that can be made", std::generic_category().message(errno),
                  "may you write into its folder?");
    std::unique_ptr<FileLock> lock(new FileLock(file, descriptor));
    const bool free = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    if (free && !same_file(descriptor, file)) {
      ::close(std::exchange(lock->descriptor_, -1));  // not ours to remove
      continue;
    }
    const std::optional<Holder> found = parse(read_start(descriptor));
    if (!free || (found && found->machine != machine())) {
      if (holder)
        *holder = found ? fmt::format("process {} on {} since {}", found->process, found->machine, found->since)
                        : "another process";
      ::close(std::exchange(lock->descriptor_, -1));
      return nullptr;
    }
    const std::string text =
        fmt::format("{} {} {:%Y-%m-%d %H:%M:%S}Z\n", ::getpid(), machine(), fmt::gmtime(std::time(nullptr)));
    if (::ftruncate(descriptor, 0) != 0 ||
        ::pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      throw Error(file.string(), "room for a line that says who is at work", std::generic_category().message(errno));
    return lock;
  }
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  if (same_file(descriptor_, file_)) ::unlink(file_.c_str());  // while it is held: nobody else's can go
  ::close(descriptor_);
}

}  // namespace headscope
