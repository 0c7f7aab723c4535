#pragma once
// Whole folders that are never half written.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

/// Lets `write` fill a new folder beside `folder` and puts it in its place at once: whoever opens `folder`, at any time
/// and after any end of this process, finds all of the old one or all of the new one. What else lay in the old one
/// stays in it, except entries of whose names `drop` says true. Through a symbolic link the folder it points at is
/// replaced. One process at a time for a folder (core/base/file_lock.h). Throws Error; the old folder is untouched
/// then.
void write_folder_atomically(const std::filesystem::path& folder,
                             const std::function<void(const std::filesystem::path& part)>& write,
                             const std::function<bool(std::string_view name)>& drop = {});

/// Removes what dead processes left of writing `folder`, or files in it: NAME.part-PROCESS-COUNT, and no other name;
/// brings back a folder whose replacement they were killed in. Call while nobody else writes it.
void clear_leftovers(const std::filesystem::path& folder);

/// What the files of a folder, or one file, look like from outside: two that differ were taken with a change between
/// them. Links are followed, folders inside are not looked into.
class FilesStamp {
 public:
  struct File {
    std::string name;
    std::uintmax_t bytes = 0;
    std::filesystem::file_time_type written;
    bool operator==(const File&) const = default;
  };
  FilesStamp() = default;
  /// As one was taken before: of files() that were written down.
  explicit FilesStamp(std::vector<File> files);
  /// Of nothing where there is nothing that could be looked at.
  static FilesStamp of(const std::filesystem::path& place);
  bool empty() const { return files_.empty(); }
  const std::vector<File>& files() const { return files_; }
  bool operator==(const FilesStamp&) const = default;

 private:
  std::vector<File> files_;  // by name
};

}  // namespace headscope
