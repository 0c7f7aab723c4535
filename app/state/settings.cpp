#include "app/state/settings.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <sstream>
#include <string_view>
#include <thread>

#include "app/state/app_state.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/file_lock.h"
#include "core/base/json.h"
#include "core/base/language.h"
#include "core/base/user_folders.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {
constexpr const char* settings_type = "headscope settings";
constexpr std::size_t size_limit = std::size_t{1} << 20;
constexpr int narrowest_window = 320, widest_window = 32000;
}  // namespace

void Settings::remember_model(const fs::path& folder) {
  std::erase(recent_models, folder);
  recent_models.insert(recent_models.begin(), folder);
  if (recent_models.size() > most_recent) recent_models.resize(most_recent);
}

fs::path settings_file() {
  const fs::path config = config_home();
  return config.empty() ? config : config / "headscope/settings.json";
}

fs::path recovery_folder() {
  const fs::path state = state_folder();
  return state.empty() ? state : state / "recovery";
}

fs::path documents_folder() {
  const fs::path own = home_folder();
  std::error_code failed;
  const auto is_there = [&](const fs::path& folder) { return !folder.empty() && fs::is_directory(folder, failed); };
  const fs::path config = config_home(), file = config / "user-dirs.dirs";
  if (!config.empty() && fs::is_regular_file(file, failed)) {
    // Lines such as XDG_DOCUMENTS_DIR="$HOME/Dokumente"; nothing but $HOME/… and absolute paths is allowed in them.
    std::istringstream lines(read_file(file, size_limit));
    constexpr std::string_view key = "XDG_DOCUMENTS_DIR=\"", home_mark = "$HOME";
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(key)) continue;
      std::string value = line.substr(key.size(), line.rfind('"') - key.size());
      if (value.starts_with(home_mark)) value = own.string() + value.substr(home_mark.size());
      if (value.starts_with('/') && is_there(value)) return fs::path(value).lexically_normal();
    }
  }
  if (is_there(own / "Documents")) return own / "Documents";
  return is_there(own) ? own : fs::path();
}

std::string to_json(const Settings& settings) {
  ordered_json out{{"type", settings_type}, {"version", settings_version}};
  out["theme"] = settings.theme;
  out["first_steps"] = settings.first_steps;
  out["picture_recipes"] = settings.picture_recipes;
  out["word_answers"] = settings.word_answers;
  out["words"] = settings.words;
  out["ui_scale"] = settings.ui_scale;
  out["window_width"] = settings.window_width;
  out["window_height"] = settings.window_height;
  if (settings.window_position)
    out["window_position"] = {settings.window_position->first, settings.window_position->second};
  out["maximized"] = settings.maximized;
  out["recent_models"] = ordered_json::array();
  for (const fs::path& model : settings.recent_models) out["recent_models"].push_back(model.generic_string());
  out["last_folder"] = settings.last_folder.generic_string();
  out["save_folder"] = settings.save_folder.generic_string();
  out["pages"] = settings.pages;
  out["threads"] = settings.threads;
  out["device"] = device_text(settings.device);
  out["precision"] = name_in(precision_names, settings.device.precision);
  out["memory_mb"] = settings.memory_mb;
  out["models_folder"] = settings.models_folder.generic_string();
  out["documents_folder"] = settings.documents_folder.generic_string();
  out["model_folders"] = ordered_json::array();
  for (const fs::path& folder : settings.model_folders) out["model_folders"].push_back(folder.generic_string());
  out["detector_rule"] = settings.detector_rule;
  out["language"] = settings.language;
  out["scene_list"] = settings.scene_list;
  // A path of other bytes than UTF-8 is not worth losing the rest for.
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Settings settings_from_json(const std::string& text, const std::string& where) {
  const json parsed = parse_strict_json(text, where);
  JsonFields fields(parsed, where);
  std::string type;
  fields.read("type", type);
  if (type != settings_type)
    throw Error(where, std::string("a settings file, \"type\": \"") + settings_type + "\"", "\"" + type + "\"");
  Settings settings;
  fields.read_word("theme", settings.theme, parse_theme, "dark, light or projector");
  settings.first_steps = false;  // a file without it is of somebody who has been here before
  fields.read("first_steps", settings.first_steps);
  fields.read("picture_recipes", settings.picture_recipes);
  fields.read("word_answers", settings.word_answers);
  fields.read("words", settings.words);
  fields.read("ui_scale", settings.ui_scale, Settings::least_scale, Settings::most_scale);
  fields.read("window_width", settings.window_width, narrowest_window, widest_window);
  fields.read("window_height", settings.window_height, narrowest_window, widest_window);
  if (const auto position = fields.find("window_position")) {
    const std::vector<JsonView> at = position->elements("whole numbers", 2, 2);
    settings.window_position = {at[0].small(-widest_window, widest_window), at[1].small(-widest_window, widest_window)};
  }
  fields.read("maximized", settings.maximized);
  if (const auto models = fields.find("recent_models")) {
    for (const JsonView& model : models->elements("folders")) {
      const fs::path folder = model.text();
      if (!folder.empty() && std::ranges::find(settings.recent_models, folder) == settings.recent_models.end() &&
          settings.recent_models.size() < Settings::most_recent)
        settings.recent_models.push_back(folder);
    }
  }
  if (const auto folders = fields.find("model_folders"))
    for (const JsonView& each : folders->elements("folders", 0, Settings::most_model_folders))
      if (const fs::path folder = each.text(); !folder.empty()) settings.model_folders.push_back(folder);
  fields.read("detector_rule", settings.detector_rule);
  if (settings.detector_rule.empty()) settings.detector_rule = Settings{}.detector_rule;  // one was being written
  if (const auto pages = fields.find("pages"))
    for (const auto& [workspace, page] : pages->members()) settings.pages[workspace] = page.text();
  fields.read("language", settings.language);
  if (!settings.language.empty() && !parse_language(settings.language)) settings.language.clear();
  fields.read("scene_list", settings.scene_list);
  fields.read("threads", settings.threads, 0, Settings::most_threads);
  fields.read_word("device", settings.device, parse_device, device_words);
  fields.read_word(
      "precision", settings.device.precision, [](std::string_view name) { return value_in(precision_names, name); },
      "f32, tf32 or bf16");
  fields.read("memory_mb", settings.memory_mb, Settings::least_memory_mb, Settings::most_memory_mb);
  fields.read("last_folder", settings.last_folder);
  fields.read("save_folder", settings.save_folder);
  fields.read("models_folder", settings.models_folder);
  fields.read("documents_folder", settings.documents_folder);
  return settings;
}

namespace {

/// Whether these are settings of a version above ours.
bool newer(const std::string& text) {
  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object() || parsed.value("type", json()) != settings_type) return false;
  const json version = parsed.value("version", json());
  return version.is_number_integer() && version > settings_version;
}

bool newer_file(const fs::path& file) {
  std::error_code failed;
  return fs::exists(file, failed) && newer(read_file(file, size_limit));
}

}  // namespace

LoadedSettings load_settings(const fs::path& file) {
  std::error_code failed;
  if (file.empty() || !fs::exists(file, failed)) return {};
  bool of_newer = false;
  try {
    const std::string text = read_file(file, size_limit);
    of_newer = newer(text);
    return {settings_from_json(text, file.string()),
            of_newer ? file.string() + " is of a newer Headscope: it stays as it is, changes here are not kept." : ""};
  } catch (const std::exception& error) {
    if (of_newer)
      return {{},
              file.string() +
                  " is of a newer Headscope, which this one cannot read: the usual settings are used, the "
                  "file stays as it is."};
    fs::path kept = file;
    kept += ".broken";
    fs::rename(file, kept, failed);
    return {{},
            std::string(error.what()) + "\nThe usual settings are used." +
                (failed ? "" : " The file was kept as " + kept.string() + ".")};
  }
}

namespace {

bool texts(const json& list) {
  return list.is_array() && std::ranges::all_of(list, [](const json& each) { return each.is_string(); });
}

bool has(const json& list, const json& entry) {
  return list.is_array() && std::ranges::find(list, entry) != list.end();
}

/// What is different in `mine` than in `known`, on top of `theirs`; null = not there. Of lists of texts every entry
/// counts for itself.
json merged(const json& known, const json& mine, const json& theirs) {
  if (mine == known) return theirs;  // also what another window took away
  if (theirs.is_null() || theirs == known) return mine;
  if (mine.is_object() && theirs.is_object()) {
    json out = theirs;
    const auto at = [](const json& in, const std::string& key) {
      return in.is_object() ? in.value(key, json()) : json();
    };
    for (const json* side : {&known, &mine})
      for (const auto& [key, value] : side->items()) {
        json now = merged(at(known, key), at(mine, key), at(theirs, key));
        if (now.is_null())
          out.erase(key);
        else
          out[key] = std::move(now);
      }
    return out;
  }
  if (!texts(mine) || !texts(theirs)) return mine;
  std::vector<json> out;
  for (const json& entry : mine)
    if (!has(known, entry) || has(theirs, entry)) out.push_back(entry);
  auto where = out.begin() + std::min<std::ptrdiff_t>(1, std::ssize(out));  // behind what was used here last
  for (const json& entry : theirs)
    if (!has(known, entry) && !has(mine, entry)) where = out.insert(where, entry) + 1;
  return out;
}

/// A moment, in which another window may be at it, too. Null where that one does not end, or no lock can be had:
/// settings are not worth more waiting.
std::unique_ptr<FileLock> turn_at(fs::path file) {
  file += ".lock";
  for (int tries = 0; tries < 50; ++tries) {
    try {
      if (auto lock = FileLock::take(file)) return lock;
    } catch (const Error&) {
      break;  // a folder that cannot be written to: what comes says so
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return nullptr;
}

}  // namespace

void save_settings(const Settings& settings, const Settings& known, const fs::path& file) {
  if (file.empty()) return;
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  const auto turn = turn_at(file);
  Settings whole = settings;
  try {
    if (fs::exists(file, failed)) {
      const Settings theirs = settings_from_json(read_file(file, size_limit), file.string());
      const auto value = [](const Settings& of) { return json::parse(to_json(of)); };
      whole = settings_from_json(merged(value(known), value(settings), value(theirs)).dump(), file.string());
    }
  } catch (const std::exception&) {  // nothing that another window wrote
    whole = settings;
  }
  save_settings(whole, file);
}

void save_settings(const Settings& settings, const fs::path& file) {
  if (file.empty()) return;
  if (newer_file(file)) return;
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  if (failed) throw Error(file.parent_path().string(), "a folder for the settings", failed.message());
  write_file_atomically(file, to_json(settings));
}

}  // namespace headscope
