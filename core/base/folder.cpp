#include "core/base/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
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
#include "core/base/fnv.h"

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

/// What the names beside a folder begin with: its own name, or, where no room would be left behind it, a number that
/// stands for it.
std::string beginning_beside(const std::string& name) {
  constexpr std::size_t longest_mark = 40, longest_name = 255;
  return name.size() + longest_mark <= longest_name ? name : fmt::format("{:016x}", fnv1a(name));
}

fs::path beside(const fs::path& place, std::string_view mark) {
  static std::atomic<unsigned> counter{0};
  return place.parent_path() /
         fmt::format("{}{}{}-{}", beginning_beside(place.filename().string()), mark, ::getpid(), counter++);
}

/// Whether `name` ends as beside(), or a file's temporary name, does: in the mark, a process and a count. Names that
/// people gave ("notes.part-2.txt", "model.old-edition") do not.
bool made_here(std::string_view name, std::string_view mark) {
  const std::size_t at = name.rfind(mark);
  if (at == std::string_view::npos) return false;
  const std::string_view numbers = name.substr(at + mark.size());
  const std::size_t dash = numbers.find('-');
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return dash != std::string_view::npos && is_number(numbers.substr(0, dash)) && is_number(numbers.substr(dash + 1));
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
  const std::string beginning = beginning_beside(place.filename().string());
  std::error_code failed;
  const auto found = [&](const fs::path& where, std::string_view mark, auto&& meant) {
    std::vector<fs::path> paths;
    for (auto at = fs::directory_iterator(where, failed); !failed && at != fs::directory_iterator();
         at.increment(failed))
      if (const std::string name = at->path().filename().string(); made_here(name, mark) && meant(name, mark))
        paths.push_back(at->path());
    return paths;
  };
  const auto of_this = [&](std::string_view name, std::string_view mark) {
    return name.substr(0, name.rfind(mark)) == beginning;
  };
  const auto any = [](std::string_view, std::string_view) { return true; };
  for (const fs::path& old : found(place.parent_path(), old_mark, of_this))
    if (!fs::exists(place, failed))
      fs::rename(old, place, failed);
    else
      fs::remove_all(old, failed);
  for (const fs::path& part : found(place.parent_path(), part_mark, of_this)) fs::remove_all(part, failed);
  for (const fs::path& part : found(place, part_mark, any)) fs::remove(part, failed);  // files: no folder goes
}

}  // namespace headscope
