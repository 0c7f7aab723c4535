#pragma once
// What the in-app file browser shows: one folder at a time, model folders told apart from others. Reads the file system
// when it goes somewhere, never in between. Owned by the UI thread.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

class FileBrowser {
 public:
  enum class Kind { folder, model, file };
  struct Entry {
    std::string name;  ///< UTF-8; other bytes are shown as U+FFFD
    std::filesystem::path path;
    Kind kind = Kind::folder;
    std::uintmax_t size = 0;  ///< of a file, bytes
  };
  struct Place {
    std::string name;
    std::filesystem::path path;
  };
  static constexpr std::size_t most_entries = 2000;

  /// Files whose names end in one of `endings` are shown (".json"); without any, folders and models alone.
  explicit FileBrowser(std::vector<std::string> endings = {}) : endings_(std::move(endings)) {}

  /// Goes to `folder`, or to the folder of a file. On failure stays where it was, and error() says why.
  bool go(const std::filesystem::path& folder);
  bool up();
  /// Back to where go() and up() came from.
  bool back();
  void refresh() { go(folder_); }
  void set_show_hidden(bool show);
  /// Keeps entries whose names contain `text`, whatever the case of ASCII letters.
  void set_filter(std::string text) { filter_ = std::move(text); }

  const std::filesystem::path& folder() const { return folder_; }
  bool is_model() const { return is_model_; }  ///< the folder itself holds a model
  bool can_go_up() const { return folder_.has_relative_path(); }
  bool can_go_back() const { return !came_from_.empty(); }
  bool show_hidden() const { return show_hidden_; }
  const std::string& filter() const { return filter_; }
  const std::string& error() const { return error_; }
  bool truncated() const { return truncated_; }  ///< the folder holds more than most_entries
  /// Models first, then folders, then files, each by name the way people count: "run 2" before "run 10".
  std::vector<const Entry*> entries() const;

  /// Where to start: bundled examples, the models folder of the project, home, the working directory, the root.
  static std::vector<Place> places();

 private:
  bool read(const std::filesystem::path& folder);

  std::vector<std::string> endings_;
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> came_from_;
  std::vector<Entry> entries_;
  std::string filter_, error_;
  bool show_hidden_ = false, truncated_ = false, is_model_ = false;
};

/// True when the folder holds a config.json, as every model folder does.
bool is_model_folder(const std::filesystem::path& folder);
/// "run 2" < "run 10" < "Run 11": runs of digits by value, letters whatever their case, ties by bytes.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace headscope
