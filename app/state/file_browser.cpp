#include "app/state/file_browser.h"

#include <algorithm>
#include <system_error>

#include "app/assets.h"
#include "core/base/user_folders.h"
#include "core/base/words.h"
#include "core/text/tokenizer.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t most_steps_back = 100;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string readable_name(const fs::path& path) {
  std::string name = path.filename().string();
  while (const auto at = first_invalid_utf8(name)) name.replace(*at, 1, "\xEF\xBF\xBD");
  return name;
}

bool contains(std::string_view text, std::string_view part) {
  return std::ranges::search(text, part, [](char a, char b) { return lower(a) == lower(b); }).begin() != text.end() ||
         part.empty();
}
}  // namespace

bool is_model_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "config.json", ignored) ||
         fs::is_regular_file(folder / "adapter_config.json", ignored);  // for the model that is open
}

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const auto number = [](std::string_view text, std::size_t& at) {
        while (at < text.size() && text[at] == '0') ++at;
        const std::size_t begin = at;
        while (at < text.size() && is_digit(text[at])) ++at;
        return text.substr(begin, at - begin);
      };
      const std::string_view x = number(a, i), y = number(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    const char x = lower(a[i++]), y = lower(b[j++]);
    if (x != y) return static_cast<unsigned char>(x) < static_cast<unsigned char>(y);
  }
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  return a < b;
}

bool FileBrowser::read(const fs::path& wanted) {
  std::error_code failed;
  fs::path folder = fs::absolute(wanted, failed).lexically_normal();
  if (!folder.has_filename() && folder.has_relative_path()) folder = folder.parent_path();  // without the last slash
  if (fs::is_regular_file(folder, failed)) folder = folder.parent_path();
  fs::directory_iterator items(folder, fs::directory_options::skip_permission_denied, failed);
  if (failed) {
    error_ = folder.string() + ": " + failed.message();
    return false;
  }
  std::vector<Entry> entries;
  bool truncated = false;
  for (const fs::directory_iterator end; items != end; items.increment(failed)) {
    if (failed) break;
    const fs::directory_entry& item = *items;
    std::error_code unreadable;
    Entry entry{readable_name(item.path()), item.path(), Kind::folder, 0};
    if (entry.name.starts_with(".") && !show_hidden_) continue;
    if (item.is_directory(unreadable)) {
      if (is_model_folder(entry.path)) entry.kind = Kind::model;
    } else {
      const auto fits = [&](const std::string& ending) { return entry.name.ends_with(ending); };
      if (!item.is_regular_file(unreadable) || std::ranges::none_of(endings_, fits)) continue;
      entry.kind = Kind::file;
      entry.size = item.file_size(unreadable);
      if (unreadable) entry.size = 0;
    }
    if (entries.size() == most_entries) {
      truncated = true;
      break;
    }
    entries.push_back(std::move(entry));
  }
  const auto rank = [](Kind kind) { return kind == Kind::model ? 0 : kind == Kind::folder ? 1 : 2; };
  std::ranges::sort(entries, [&](const Entry& a, const Entry& b) {
    return a.kind != b.kind ? rank(a.kind) < rank(b.kind) : natural_less(a.name, b.name);
  });
  folder_ = folder;
  entries_ = std::move(entries);
  truncated_ = truncated;
  is_model_ = is_model_folder(folder);
  error_.clear();
  return true;
}

bool FileBrowser::go(const fs::path& folder) {
  const fs::path before = folder_;
  if (!read(folder)) return false;
  if (!before.empty() && before != folder_) {
    came_from_.push_back(before);
    if (came_from_.size() > most_steps_back) came_from_.erase(came_from_.begin());
    filter_.clear();
  }
  return true;
}

bool FileBrowser::up() {
  return can_go_up() && go(folder_.parent_path());
}

bool FileBrowser::back() {
  if (came_from_.empty()) return false;
  const fs::path folder = came_from_.back();
  came_from_.pop_back();
  filter_.clear();
  return read(folder);
}

void FileBrowser::set_show_hidden(bool show) {
  show_hidden_ = show;
  if (!folder_.empty()) read(folder_);
}

std::vector<const FileBrowser::Entry*> FileBrowser::entries() const {
  std::vector<const Entry*> shown;
  for (const Entry& entry : entries_)
    if (contains(entry.name, filter_)) shown.push_back(&entry);
  return shown;
}

std::vector<FileBrowser::Place> FileBrowser::places() {
  std::vector<Place> places;
  const auto add = [&](const std::string& name, const fs::path& path) {
    std::error_code ignored;
    const bool known = std::ranges::any_of(places, [&](const Place& place) { return place.path == path; });
    if (!path.empty() && !known && fs::is_directory(path, ignored)) places.push_back({name, path});
  };
  if (const auto examples = find_asset("examples")) {
    add(to_say("Examples"), examples->lexically_normal());
    add(to_say("Models"), (*examples / "../../models").lexically_normal());
  }
  add(to_say("Home"), home_folder());
  std::error_code ignored;
  add(to_say("Working folder"), fs::current_path(ignored));
  add(to_say("File system"), "/");
  return places;
}

}  // namespace headscope
