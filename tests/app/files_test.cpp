#include <doctest/doctest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "app/state/file_browser.h"
#include "app/state/settings.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/paths.h"

namespace headscope::files_test {

using testing::scratch_dir;
namespace fs = std::filesystem;

namespace {
void touch(const fs::path& file, std::size_t bytes = 1) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << std::string(bytes, 'x');
}

std::vector<std::string> names(const FileBrowser& browser) {
  std::vector<std::string> all;
  for (const FileBrowser::Entry* entry : browser.entries()) all.push_back(entry->name);
  return all;
}
using Names = std::vector<std::string>;
}  // namespace

TEST_CASE("names are ordered the way people count") {
  const std::vector<std::string> ordered{"a", "a1", "a2", "A10", "a010b", "b", "run 2", "Run 10", "run 10x", "z"};
  for (std::size_t i = 0; i + 1 < ordered.size(); ++i) {
    CAPTURE(ordered[i]);
    CHECK(natural_less(ordered[i], ordered[i + 1]));
    CHECK_FALSE(natural_less(ordered[i + 1], ordered[i]));
  }
  CHECK_FALSE(natural_less("same", "same"));
  CHECK(natural_less("7", "99999999999999999999999999"));
}

TEST_CASE("the browser shows models first, then folders, then the files that fit") {
  const fs::path root = scratch_dir("browser");
  touch(root / "run 10/config.json");
  touch(root / "run 2/config.json");
  touch(root / "notes/readme.txt");
  touch(root / "b.json", 12);
  touch(root / "a.txt");
  touch(root / ".hidden/config.json");
  FileBrowser browser({".json"});
  REQUIRE(browser.go(root));
  CHECK(names(browser) == Names{"run 2", "run 10", "notes", "b.json"});
  CHECK(browser.entries()[0]->kind == FileBrowser::Kind::model);
  CHECK(browser.entries()[2]->kind == FileBrowser::Kind::folder);
  CHECK(browser.entries()[3]->size == 12);
  browser.set_show_hidden(true);
  CHECK(names(browser).front() == ".hidden");
  browser.set_show_hidden(false);
  browser.set_filter("RUN");
  CHECK(names(browser) == Names{"run 2", "run 10"});
  CHECK_FALSE(browser.is_model());

  REQUIRE(browser.go(root / "run 2"));
  CHECK(browser.is_model());
  CHECK(browser.filter() == "");
  CHECK(names(browser) == Names{"config.json"});
  CHECK(browser.up());
  CHECK(browser.folder() == root);
  CHECK(browser.back());
  CHECK(browser.folder() == root / "run 2");
  CHECK(browser.back());
  CHECK(browser.folder() == root);
  CHECK_FALSE(browser.back());
  REQUIRE(browser.go(root / "b.json"));  // a dropped file: its folder
  CHECK(browser.folder() == root);
  CHECK(FileBrowser().go(root));
}

TEST_CASE("a folder that cannot be read leaves the browser where it was, with the reason") {
  const fs::path root = scratch_dir("browser");
  FileBrowser browser;
  REQUIRE(browser.go(root));
  CHECK_FALSE(browser.go(root / "nothing"));
  CHECK(browser.folder() == root);
  CHECK(browser.error().find("nothing") != std::string::npos);
  CHECK(browser.go(root));
  CHECK(browser.error() == "");
  REQUIRE(browser.go("/"));
  CHECK_FALSE(browser.can_go_up());
  CHECK_FALSE(browser.up());
}

TEST_CASE("a huge folder is cut, and a name of other bytes can be shown") {
  const fs::path root = scratch_dir("huge");
  for (std::size_t i = 0; i < FileBrowser::most_entries + 5; ++i) fs::create_directory(root / std::to_string(i));
  FileBrowser browser;
  REQUIRE(browser.go(root));
  CHECK(browser.truncated());
  CHECK(browser.entries().size() == FileBrowser::most_entries);
  const fs::path odd = scratch_dir("odd");
  std::error_code failed;
  fs::create_directory(odd / "a\xff\xfez", failed);
  if (failed) return;  // this file system allows UTF-8 only
  REQUIRE(browser.go(odd));
  CHECK_FALSE(browser.truncated());
  CHECK(names(browser) == Names{"a\uFFFD\uFFFDz"});
}

TEST_CASE("settings survive their file, which keeps each recent model once, newest first") {
  const fs::path file = scratch_dir("settings") / "deep/er/settings.json";
  Settings settings;
  settings.theme = "light";
  settings.ui_scale = 1.25;
  settings.window_width = 1280;
  settings.window_height = 720;
  settings.maximized = settings.words = true;
  settings.last_folder = "/somewhere";
  settings.threads = 3;
  settings.memory_mb = 256;
  settings.models_folder = "/models";
  settings.documents_folder = "/home/me/Documents";
  settings.pages = {{"Analyse", "patch"}, {"Mechanisms", "linear"}};
  settings.detector_rule = "k == 0 and token[k] == \"a\"";
  for (int i = 0; i < 20; ++i) settings.remember_model("/m/" + std::to_string(i % 15));
  settings.remember_model("/m/3");
  CHECK(settings.recent_models.size() == Settings::most_recent);
  CHECK(settings.recent_models.front() == "/m/3");
  save_settings(settings, file);
  const LoadedSettings loaded = load_settings(file);
  CHECK(loaded.message == "");
  CHECK(loaded.settings == settings);
}

TEST_CASE("the language of lessons is a setting; one that is none is the system's") {
  Settings settings;
  settings.language = "pt_BR";
  CHECK(settings_from_json(to_json(settings), "s") == settings);
  CHECK(settings_from_json(R"({"type": "headscope settings", "language": "German"})", "s").language == "");
  CHECK(settings_from_json(R"({"type": "headscope settings"})", "s").language == "");
}

TEST_CASE("a missing settings file gives the defaults; a broken one too, says so, and is kept") {
  const fs::path folder = scratch_dir("settings"), file = folder / "settings.json";
  CHECK(load_settings(file).settings == Settings{});
  CHECK(load_settings(file).message == "");
  CHECK(load_settings({}).message == "");
  for (const char* broken : {"", "{", "[]", R"({"type": "x"})", R"({"type": "headscope settings", "ui_scale": 100})",
                             R"({"type": "headscope settings", "recent_models": [1]})"}) {
    CAPTURE(broken);
    write_file_atomically(file, std::string_view(broken));
    const LoadedSettings loaded = load_settings(file);
    CHECK(loaded.settings == Settings{});
    CHECK(loaded.message.find("settings.json") != std::string::npos);
    CHECK_FALSE(fs::exists(file));
    CHECK(read_file(folder / "settings.json.broken") == broken);
  }
  CHECK(settings_from_json(R"({"type": "headscope settings", "version": 9, "new": 1, "theme": "light"})", "s").theme ==
        "light");
}

TEST_CASE("two windows write what each of them changed, and nothing of the other is lost") {
  const fs::path file = scratch_dir("two-windows") / "settings.json";
  Settings before;
  before.recent_models = {"/m/1", "/m/2"};
  before.model_folders = {"/a", "/b", "/c"};
  before.pages = {{"Analyse", "patch"}, {"Train", "x"}};
  before.window_position = {{1, 2}};
  save_settings(before, Settings{}, file);
  CHECK(load_settings(file).settings == before);

  Settings first = before, second = before;
  first.theme = "light";
  first.language = "de";
  first.remember_model("/m/3");
  first.model_folders = {"/a", "/c", "/d"};
  first.pages["Analyse"] = "lens";
  first.memory_mb = 64;
  first.device = {true, 1};
  second.ui_scale = 2;
  second.remember_model("/m/2");
  second.remember_model("/m/4");
  second.model_folders = {"/b", "/c", "/e"};
  second.pages["Train"] = "y";
  second.memory_mb = 128;
  second.window_position = {{1, 5}};
  save_settings(first, before, file);
  CHECK(load_settings(file).settings == first);
  save_settings(second, before, file);
  const Settings both = load_settings(file).settings;
  CHECK(both.theme == "light");
  CHECK(both.language == "de");
  CHECK(both.device == first.device);
  CHECK(both.ui_scale == 2);
  CHECK(both.memory_mb == 128);  // the last word
  CHECK(both.window_position == second.window_position);
  CHECK(both.recent_models == std::vector<fs::path>{"/m/4", "/m/3", "/m/2", "/m/1"});
  CHECK(both.model_folders == std::vector<fs::path>{"/c", "/d", "/e"});  // one took /b away, the other /a
  CHECK(both.pages == std::map<std::string, std::string>{{"Analyse", "lens"}, {"Train", "y"}});

  // A window that changed nothing since it wrote leaves all of it.
  save_settings(second, second, file);
  CHECK(load_settings(file).settings == both);
  CHECK(std::distance(fs::directory_iterator(file.parent_path()), fs::directory_iterator{}) == 1);
  // What no settings are is written over, as by one window; a newer program's is not.
  write_file_atomically(file, "{");
  save_settings(second, second, file);
  CHECK(load_settings(file).settings == second);
  const std::string newer = R"({"type": "headscope settings", "version": 2, "theme": "light", "stars": 1})";
  write_file_atomically(file, newer);
  save_settings(second, before, file);
  CHECK(read_file(file) == newer);
}

TEST_CASE("what one window took away does not come back with what another changed") {
  const fs::path file = scratch_dir("taken-away") / "settings.json";
  Settings before;
  before.pages = {{"Analyse", "patch"}, {"Train", "x"}, {"Corpus", "y"}};
  before.window_position = {{1, 2}};
  save_settings(before, file);
  Settings first = before, second = before;
  first.pages.erase("Train");
  first.pages.erase("Corpus");
  first.window_position.reset();
  second.theme = "light";
  second.pages["Analyse"] = "lens";
  second.pages["Corpus"] = "z";  // changed here, taken away there: the last word
  save_settings(first, before, file);
  save_settings(second, before, file);
  const Settings both = load_settings(file).settings;
  CHECK(both.theme == "light");
  CHECK(both.pages == std::map<std::string, std::string>{{"Analyse", "lens"}, {"Corpus", "z"}});
  CHECK_FALSE(both.window_position);
}

TEST_CASE("windows that end at the same moment lose no change of each other") {
  const fs::path file = scratch_dir("many-windows") / "settings.json";
  save_settings(Settings{}, file);
  std::vector<std::jthread> windows;
  for (int i = 0; i < 8; ++i)
    windows.emplace_back([&file, i] {
      Settings mine;
      mine.pages["page " + std::to_string(i)] = "seen";
      save_settings(mine, Settings{}, file);
    });
  windows.clear();
  CHECK(load_settings(file).settings.pages.size() == 8);
}

TEST_CASE("the settings file lies where XDG says, else under the home folder") {
  const auto with = [](const char* config, const char* home) {
    const char* old_config = std::getenv("XDG_CONFIG_HOME");
    const char* old_home = std::getenv("HOME");
    const std::string kept_config = old_config ? old_config : "", kept_home = old_home ? old_home : "";
    config ? setenv("XDG_CONFIG_HOME", config, 1) : unsetenv("XDG_CONFIG_HOME");
    home ? setenv("HOME", home, 1) : unsetenv("HOME");
    const fs::path file = settings_file();
    old_config ? setenv("XDG_CONFIG_HOME", kept_config.c_str(), 1) : unsetenv("XDG_CONFIG_HOME");
    old_home ? setenv("HOME", kept_home.c_str(), 1) : unsetenv("HOME");
    return file;
  };
  CHECK(with("/c", "/h") == "/c/headscope/settings.json");
  CHECK(with("relative", "/h") == "/h/.config/headscope/settings.json");
  CHECK(with(nullptr, "/h") == "/h/.config/headscope/settings.json");
  CHECK(with(nullptr, "").empty());
  // As a service has it: the home folder is the one that the system knows of.
  const passwd* const user = getpwuid(getuid());
  REQUIRE(user);
  CHECK(with(nullptr, nullptr) == fs::path(user->pw_dir) / ".config/headscope/settings.json");
}

TEST_CASE("settings of a newer program are read as far as they are known, and stay as they are") {
  const fs::path file = scratch_dir("newer") / "settings.json";
  const std::string known =
      R"({"type": "headscope settings", "version": 2, "theme": "light", "ui_scale": 1.5, "stars": [1, 2]})";
  write_file_atomically(file, known);
  LoadedSettings loaded = load_settings(file);
  CHECK(loaded.settings.theme == "light");
  CHECK(loaded.settings.ui_scale == 1.5);
  CHECK(loaded.message.find("of a newer Headscope: it stays as it is") != std::string::npos);
  loaded.settings.theme = "dark";
  save_settings(loaded.settings, file);
  CHECK(read_file(file) == known);

  // A value that only the newer program understands: the usual settings, and the file is no broken one.
  const std::string strange = R"({"type": "headscope settings", "version": 99, "theme": {"base": "light"}})";
  write_file_atomically(file, strange);
  loaded = load_settings(file);
  CHECK(loaded.settings == Settings{});
  CHECK(loaded.message.find("which this one cannot read") != std::string::npos);
  save_settings(loaded.settings, file);
  CHECK(read_file(file) == strange);
  CHECK(std::distance(fs::directory_iterator(file.parent_path()), fs::directory_iterator{}) == 1);

  // Our own version, an older one and none are written over.
  for (const char* version : {"1", "0", "\"2\"", "null"}) {
    write_file_atomically(file, std::string(R"({"type": "headscope settings", "version": )") + version + "}");
    save_settings(Settings{}, file);
    CHECK(read_file(file) == to_json(Settings{}));
  }
}

}  // namespace headscope::files_test
