#include "core/base/folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view part_mark = ".part-", old_mark = ".old-";

/// Where the folder really is, and under which name.
fs::path real_place(const fs::path& folder) {
  std::error_code failed;
  fs::path place = fs::weakly_canonical(folder, failed);
  if (failed) place = fs::absolute(folder, failed);
  if (!place.has_filename()) place = place.parent_path();
  return place;
}

fs::path beside(const fs::path& place, std::string_view mark) {
  static std::atomic<unsigned> counter{0};
  fs::path path = place;
  path += std::string(mark) + std::to_string(::getpid()) + "-" + std::to_string(counter++);
  return path;
}

/// Both names change places in one step. False where the file system cannot.
bool exchange(const fs::path& a, const fs::path& b) {
#if defined(__linux__) && defined(RENAME_EXCHANGE)
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
#elif defined(__APPLE__)
  return ::renamex_np(a.c_str(), b.c_str(), RENAME_SWAP) == 0;
#else
  (void)a, (void)b;
  return false;
#endif
}

/// The names in a folder on the disk.
void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);  // some file systems cannot; then there is nothing to be done
  ::close(descriptor);
}

/// Goes away with this block unless it was put in place.
struct Part {
  fs::path path;
  ~Part() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

void keep_the_rest(const fs::path& old, const fs::path& part, const std::function<bool(std::string_view)>& drop) {
  for (const fs::directory_entry& entry : fs::directory_iterator(old)) {
    const std::string name = entry.path().filename().string();
    if ((drop && drop(name)) || fs::exists(fs::symlink_status(part / name))) continue;
    std::error_code failed;
    const auto how = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
    fs::copy(entry.path(), part / name, how | fs::copy_options::create_hard_links, failed);
    if (!failed) continue;
    fs::remove_all(part / name, failed);
    fs::copy(entry.path(), part / name, how);  // a file system without links
  }
}

}  // namespace

void write_folder_atomically(const fs::path& folder, const std::function<void(const fs::path&)>& write,
                             const std::function<bool(std::string_view)>& drop) {
  const fs::path place = real_place(folder);
  const auto refuse = [&](const std::string& reason) {
    return Error(folder.string(), "a folder that can be written whole and put in place", reason,
                 "choose another folder");
  };
  Part part{beside(place, part_mark)};
  try {
    fs::create_directories(part.path);
    write(part.path);
    const bool replaces = fs::exists(place);
    if (replaces) {
      keep_the_rest(place, part.path, drop);
      fs::permissions(part.path, fs::status(place).permissions());
    }
    flush_folder(part.path);
    if (!replaces) {
      fs::rename(part.path, place);
      part.path.clear();
    } else if (!exchange(part.path, place)) {
      const fs::path old = beside(place, old_mark);
      fs::rename(place, old);
      fs::rename(part.path, place);
      part.path = old;  // which goes now
    }
  } catch (const fs::filesystem_error& failed) {
    throw refuse(failed.code().message());
  }
  flush_folder(place.parent_path());
}

FilesStamp::FilesStamp(std::vector<File> files) : files_(std::move(files)) {
  std::ranges::sort(files_, {}, &File::name);
}

FilesStamp FilesStamp::of(const fs::path& place) {
  FilesStamp stamp;
  std::error_code failed;
  const auto add = [&](const fs::path& file) {
    std::error_code gone;  // between being listed and being looked at
    if (!fs::is_regular_file(file, gone)) return;
    File seen{file.filename().string(), fs::file_size(file, gone), {}};
    if (!gone) seen.written = fs::last_write_time(file, gone);
    if (!gone) stamp.files_.push_back(std::move(seen));
  };
  add(place);
  for (auto at = fs::directory_iterator(place, failed); !failed && at != fs::directory_iterator(); at.increment(failed))
    add(at->path());
  std::ranges::sort(stamp.files_, {}, &File::name);
  return stamp;
}

void clear_leftovers(const fs::path& folder) {
  const fs::path place = real_place(folder);
  const std::string name = place.filename().string();
  std::error_code failed;
  const auto marked = [&](const fs::path& where, const std::string& beginning) {
    std::vector<fs::path> found;
    for (auto at = fs::directory_iterator(where, failed); !failed && at != fs::directory_iterator();
         at.increment(failed))
      if (at->path().filename().string().starts_with(beginning)) found.push_back(at->path());
    return found;
  };
  for (const fs::path& old : marked(place.parent_path(), name + std::string(old_mark)))
    if (!fs::exists(place, failed))
      fs::rename(old, place, failed);
    else
      fs::remove_all(old, failed);
  for (const fs::path& part : marked(place.parent_path(), name + std::string(part_mark))) fs::remove_all(part, failed);
  for (const fs::path& entry : marked(place, ""))
    if (entry.filename().string().find(part_mark) != std::string::npos) fs::remove_all(entry, failed);
}

}  // namespace headscope
