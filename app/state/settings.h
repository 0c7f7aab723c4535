#pragma once
// What the window remembers between starts, in one JSON file. A broken file never keeps the window from opening.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda/device_choice.h"

namespace headscope {

struct Settings {
  std::string theme = "dark";
  bool first_steps = true;                             ///< what meets a newcomer, above the head in Explore
  bool picture_recipes = true;                         ///< pictures' files tell how they were made
  bool word_answers = true;                            ///< above the head, what heads do from the pinned word
  bool words = false;                                  ///< text in words rather than tokens
  double ui_scale = 1;                                 ///< on top of what the display asks for
  int window_width = 1600, window_height = 1000;       ///< logical pixels
  std::optional<std::pair<int, int>> window_position;  ///< upper left corner on the desktop, screen coordinates
  bool maximized = false;
  std::vector<std::filesystem::path> recent_models;       ///< newest first, each once
  std::filesystem::path last_folder;                      ///< where the file browser was, to open
  std::filesystem::path save_folder;                      ///< … to save and to export
  std::map<std::string, std::string> pages;               ///< by a workspace's title: the id of what it shows
  int threads = 0;                                        ///< that compute; 0 = one per hardware thread
  DeviceChoice device;                                    ///< that computes
  int memory_mb = 1024;                                   ///< of one trace, mebibytes
  std::filesystem::path models_folder, documents_folder;  ///< where dialogs begin; empty = where the last one was
  std::vector<std::filesystem::path> model_folders;       ///< where models are looked for besides, in this order
  std::string detector_rule = "k == q - 1";               ///< the last that was written (core/metrics/cell_rule.h)

  std::string language;                  ///< of the window and of lessons, "de"; "" = the system's
  std::string scene_list = "my-scenes";  ///< that scenes are put on (app/state/scene_list.h)

  static constexpr std::size_t most_recent = 12, most_model_folders = 32;
  static constexpr double least_scale = 0.5, most_scale = 4;
  static constexpr int most_threads = 1024, least_memory_mb = 16, most_memory_mb = 1 << 20;
  void remember_model(const std::filesystem::path& folder);
  bool operator==(const Settings&) const = default;
};

inline constexpr int settings_version = 1;

/// $XDG_CONFIG_HOME/headscope/settings.json, else ~/.config/…; empty when neither variable is set.
std::filesystem::path settings_file();

/// Where work is kept that is in no file yet: $XDG_STATE_HOME/headscope/recovery, else ~/.local/state/…; empty when
/// neither variable is set.
std::filesystem::path recovery_folder();
/// Where a person's own files are: the documents folder that the desktop names (xdg-user-dirs), else home; empty when
/// there is none.
std::filesystem::path documents_folder();

struct LoadedSettings {
  Settings settings;
  std::string message;  ///< why the file could not be used, and where it was put; "" = all is well
};
/// Never throws: a missing file gives the defaults, a broken one also, with a message; it is kept as FILE.broken, so
/// that the next save does not destroy it. Of a newer Headscope's file what is understood is taken; it stays as it is.
LoadedSettings load_settings(const std::filesystem::path& file);
/// Makes the folder; the file appears whole or not at all. Throws Error. A newer Headscope's file is left alone: this
/// program would drop what it does not know.
void save_settings(const Settings& settings, const std::filesystem::path& file);
/// The same beside other windows: `known` is what this one read or wrote last. What differs from it is written, all
/// else stays as another window has written it meanwhile; of lists, every entry counts for itself.
void save_settings(const Settings& settings, const Settings& known, const std::filesystem::path& file);

std::string to_json(const Settings& settings);
/// Throws Error at `where`. Unknown keys are let pass: an older Headscope may read what a newer one wrote.
Settings settings_from_json(const std::string& json, const std::string& where);

}  // namespace headscope
