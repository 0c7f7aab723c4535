#pragma once
// Whole folders that are never half written.

#include <filesystem>
#include <functional>
#include <string_view>

namespace headscope {

/// Lets `write` fill a new folder beside `folder` and puts it in its place at once: whoever opens `folder`, at any time
/// and after any end of this process, finds all of the old one or all of the new one. What else lay in the old one
/// stays in it, except entries of whose names `drop` says true. Through a symbolic link the folder it points at is
/// replaced. One process at a time for a folder (core/base/file_lock.h). Throws Error; the old folder is untouched
/// then.
void write_folder_atomically(const std::filesystem::path& folder,
                             const std::function<void(const std::filesystem::path& part)>& write,
                             const std::function<bool(std::string_view name)>& drop = {});

/// Removes what dead processes left of writing `folder`, or files in it: NAME.part-…; brings back a folder whose
/// replacement they were killed in. Call while nobody else writes it.
void clear_leftovers(const std::filesystem::path& folder);

}  // namespace headscope
