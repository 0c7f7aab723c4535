// Models by the window: the menu that finds those on this machine, the page that gets others, the folders in Settings.

#include <doctest/doctest.h>

#include <cstdlib>
#include <initializer_list>

#include "app/window/app.h"
#include "core/base/file.h"
#include "tests/gui/driver.h"
#include "tests/support/environment.h"
#include "tests/support/fake_hub.h"
#include "tests/support/paths.h"
#include "viz/export/png.h"

namespace headscope::models_test {

using testing::Driver;
using testing::FakeHub;
using testing::scratch_dir;
namespace fs = std::filesystem;

namespace {

struct Program {
  explicit Program(const std::string& name, int width = 1280, int height = 720)
      : home(scratch_dir(name)), app((environment.use_hub(home, hub.url()), options(home, width, height))) {
    hub.take_folder(testing::reference("gpt2-random").string(), 10'000);
    driver.until([&] { return app.settled() && app.explorer().results().run; }, 20'000);
  }
  static AppOptions options(const fs::path& home, int width, int height) {
    AppOptions out;
    out.width = width, out.height = height;
    out.offscreen = out.name_items = true;
    out.example = "induction";
    out.settings = home / "settings.json";
    return out;
  }
  /// Where somebody wants to see it, a picture of the window.
  void picture(const std::string& name) {
    if (const char* folder = std::getenv("HEADSCOPE_TEST_PICTURES")) {
      driver.frames(3);
      write_file_atomically(fs::path(folder) / (name + ".png"),
                            encode_png(app.window().capture(), 96, {.title = "Headscope", .description = ""}));
    }
  }
  void open_menu() {
    driver.key(ImGuiKey_M, ImGuiMod_Ctrl);
    REQUIRE(driver.until([&] { return driver.shown("tiny-llama"); }));
  }
  /// The whole of every named item is inside the window.
  void fits(std::string_view name) {
    const Item item = driver.item(name);
    CAPTURE(name);
    CHECK(item.min.x >= 0);
    CHECK(item.max.x <= ImGui::GetIO().DisplaySize.x);
    CHECK(item.max.y <= ImGui::GetIO().DisplaySize.y);
  }
  std::string opened() { return app.explorer().results().model_folder.string(); }

  testing::Environment environment;
  FakeHub hub;
  fs::path home;
  App app;
  Driver driver{app.window(), [this] { app.frame(); }};
};

/// A folder with a model that opens and one that does not.
fs::path folder_of_models(const fs::path& below) {
  const fs::path folder = below / "mine";
  const auto with = [&](const std::string& name, std::initializer_list<const char*> files) {
    fs::create_directories(folder / name);
    for (const char* file : files) fs::copy_file(testing::reference("gpt2-random") / file, folder / name / file);
  };
  with("half-gpt2", {"config.json", "vocab.json", "merges.txt", "model.safetensors"});
  with("some-bert", {"model.safetensors"});
  write_file_atomically(folder / "some-bert" / "config.json", R"({"model_type": "bert"})");
  return folder;
}

}  // namespace

TEST_CASE("the menu lists what is on this machine, is filtered by typing, and Enter opens the first") {
  HEADSCOPE_NEEDS_DISPLAY();
  Program p("gui-models-menu");
  p.app.settings().model_folders = {folder_of_models(p.home)};
  p.open_menu();
  for (const char* name : {"tiny-gpt2", "half-gpt2", "some-bert", "Quit"}) CHECK(p.driver.shown(name));
  p.fits("Quit");
  p.picture("models-menu-1280");
  p.driver.type("some-b");
  p.driver.frames(2);
  CHECK_FALSE(p.driver.shown("tiny-gpt2"));
  p.picture("models-menu-refused");
  const std::string before = p.opened();
  p.driver.click("some-bert");  // it does not open: the menu stays, and says why
  p.driver.frames(10);
  CHECK(p.opened() == before);
  p.driver.hover("some-bert");
  CHECK(p.driver.until([&] { return p.driver.told("bert"); }));  // it waits for a pointer that stays
  p.driver.key(ImGuiKey_Escape);
  p.driver.frames(2);

  p.open_menu();
  p.driver.type("tiny-ll");
  p.driver.frames(2);
  p.driver.key(ImGuiKey_Enter);
  CHECK(p.driver.until([&] { return p.opened().ends_with("tiny-llama"); }, 20'000));
  CHECK_FALSE(p.driver.shown("##filter models"));
  CHECK(p.app.settings().recent_models.front().filename() == "tiny-llama");

  p.open_menu();  // arrows go past what does not open
  p.driver.type("mine");
  p.driver.frames(2);
  p.driver.key(ImGuiKey_DownArrow);
  p.driver.key(ImGuiKey_Enter);
  CHECK(p.driver.until([&] { return p.opened().ends_with("half-gpt2"); }, 20'000));
}

TEST_CASE("Get a model: nothing is asked before the click; then it comes, with its progress, and is opened") {
  HEADSCOPE_NEEDS_DISPLAY();
  Program p("gui-models-get");
  p.driver.key(ImGuiKey_G, ImGuiMod_Ctrl);
  REQUIRE(p.driver.until([&] { return p.driver.shown("openai-community/gpt2"); }));
  p.picture("get-1280");
  for (const char* name : {"Get", "Close", "##model to get", "##revision to get"}) p.fits(name);
  p.driver.click("distilbert/distilgpt2");
  p.driver.frames(2);
  CHECK(p.hub.targets().empty());
  p.driver.click("##model to get");
  p.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  p.driver.type("someone/small");
  p.driver.frames(2);
  p.hub.pause_ms = 60;
  p.driver.click("Get");
  REQUIRE(p.driver.until([&] { return p.driver.shown("progress") && !p.hub.asked_of_store().empty(); }));
  p.picture("get-progress-1280");
  p.driver.click("Stop");
  p.driver.frames(3);
  CHECK_FALSE(p.driver.shown("progress"));
  p.picture("get-stopped-1280");
  p.hub.pause_ms = 0;
  p.driver.click("Get");
  REQUIRE(p.driver.until([&] { return p.opened().find("models--someone--small") != std::string::npos; }, 20'000));
  CHECK_FALSE(p.driver.shown("##model to get"));
  CHECK(fs::exists(p.home / "hub" / "models--someone--small" / "refs" / "main"));
  p.open_menu();
  CHECK(p.driver.shown("someone/small"));
}

TEST_CASE("what cannot be got is said in the page: a mistaken name, a model that is not there, no network") {
  HEADSCOPE_NEEDS_DISPLAY();
  Program p("gui-models-refused");
  const auto ask = [&](const std::string& name) {
    p.driver.key(ImGuiKey_G, ImGuiMod_Ctrl);
    REQUIRE(p.driver.until([&] { return p.driver.shown("openai-community/gpt2"); }));
    p.driver.click("##model to get");
    p.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
    p.driver.type(name);
    p.driver.frames(2);
    p.driver.click("Get");
  };
  ask("gpt2");
  p.driver.frames(3);
  CHECK(p.hub.targets().empty());
  p.picture("get-mistaken-1280");
  p.driver.click("Close");
  ask("someone/nowhere");
  REQUIRE(p.driver.until([&] { return !p.hub.targets().empty() && !p.driver.shown("Stop"); }));
  p.picture("get-failed-1280");
  CHECK_FALSE(p.app.explorer().jobs.message());  // it is said where it was asked
  p.fits("Close");
  p.driver.click("Close");
  p.environment.set("HF_HUB_OFFLINE", "1");
  p.hub.forget();
  ask("someone/small");
  p.driver.frames(5);
  CHECK(p.hub.targets().empty());
  p.picture("get-offline-1280");
}

TEST_CASE("Settings keep folders of models: added, refused, removed, written down") {
  HEADSCOPE_NEEDS_DISPLAY();
  Program p("gui-models-settings");
  const fs::path folder = folder_of_models(p.home);
  const auto add = [&](const std::string& path) {
    p.driver.click("##Look for models in");
    p.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
    p.driver.type(path);
    p.driver.frames(2);
    p.driver.click("Add");
    p.driver.frames(2);
  };
  p.driver.key(ImGuiKey_Comma, ImGuiMod_Ctrl);
  p.driver.frames(2);
  add("relative");
  CHECK(p.app.settings().model_folders.empty());
  add((p.home / "nowhere").string());
  CHECK(p.app.settings().model_folders.empty());
  add(folder.string());
  CHECK(p.app.settings().model_folders == std::vector<fs::path>{folder});
  add(folder.string());
  CHECK(p.app.settings().model_folders.size() == 1);
  p.picture("settings-1280");
  p.fits("Close");
  p.driver.click("Close");
  p.driver.frames(2);
  CHECK(load_settings(p.home / "settings.json").settings.model_folders == std::vector<fs::path>{folder});
  p.driver.key(ImGuiKey_Comma, ImGuiMod_Ctrl);
  p.driver.frames(2);
  p.driver.click("Remove");
  p.driver.frames(2);
  CHECK(p.app.settings().model_folders.empty());
}

TEST_CASE("on a larger window all of it has room") {
  HEADSCOPE_NEEDS_DISPLAY();
  Program p("gui-models-large", 1600, 1000);
  p.app.settings().model_folders = {folder_of_models(p.home)};
  p.open_menu();
  p.fits("Quit");
  p.picture("models-menu-1600");
  p.driver.key(ImGuiKey_Escape);
  p.driver.frames(2);
  p.driver.key(ImGuiKey_G, ImGuiMod_Ctrl);
  REQUIRE(p.driver.until([&] { return p.driver.shown("openai-community/gpt2"); }));
  p.driver.click("openai-community/gpt2");
  p.fits("Close");
  p.picture("get-1600");
}

}  // namespace headscope::models_test
