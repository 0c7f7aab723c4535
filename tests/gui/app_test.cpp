// The whole program on the bundled example: opens, traces, answers to keys, palette, dialogs, files.

#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/state/exports.h"
#include "app/state/picture_recipe.h"
#include "app/window/app.h"
#include "app/window/file_dialog.h"
#include "core/base/file.h"
#include "core/edits/temperature_edit.h"
#include "tests/gui/analyse_page.h"
#include "tests/gui/driver.h"
#include "tests/support/model_folder.h"
#include "tests/support/paths.h"
#include "viz/export/recipe_note.h"

namespace headscope::app_test {

using testing::scratch_dir;

namespace {

AppOptions hidden() {
  AppOptions options;
  options.width = 1280, options.height = 720;
  options.offscreen = options.name_items = true;
  return options;
}

/// The app with a person in front of it.
struct Controller {
  App app;
  headscope::testing::Driver driver;
  explicit Controller(const AppOptions& options = hidden())
      : app(options), driver(app.window(), [this] { app.frame(); }) {
    REQUIRE(driver.until([&] { return app.settled() && app.explorer().results().run; }));
  }
  const AppState& state() { return app.explorer().state(); }
};

}  // namespace

TEST_CASE("the program opens with the bundled example already traced") {
  HEADSCOPE_NEEDS_DISPLAY();
  Controller s;
  REQUIRE(s.app.explorer().results().run);
  CHECK(s.app.explorer().results().run->trace->tokens.size() > 4);
  CHECK(s.driver.shown("Model"));
  CHECK_FALSE(s.app.explorer().jobs.message());
}

TEST_CASE("arrow keys walk heads, Ctrl Z takes them back, numbers choose the view") {
  HEADSCOPE_NEEDS_DISPLAY();
  Controller s;
  s.driver.key(ImGuiKey_Home);
  const HeadId before = s.state().document.selected;
  const ModelDims& dims = s.app.explorer().results().run->trace->model.dims;
  REQUIRE(dims.layers * dims.heads > 1);
  const bool last = before.head + 1 == dims.heads;
  s.driver.key(last ? ImGuiKey_LeftArrow : ImGuiKey_RightArrow);
  CHECK(s.state().document.selected.head == before.head + (last ? -1 : 1));
  s.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  CHECK(s.state().document.selected == before);
  s.driver.key(ImGuiKey_3);
  CHECK(s.state().view.head_view == HeadView::row);
  s.driver.key(ImGuiKey_1);
  CHECK(s.state().view.head_view == HeadView::map);
}

TEST_CASE("the palette finds a head and a theme by a few letters") {
  HEADSCOPE_NEEDS_DISPLAY();
  Controller s;
  const auto pick = [&](const char* letters) {
    s.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
    REQUIRE(s.driver.shown("##palette query"));
    s.driver.type(letters);
    s.driver.key(ImGuiKey_Enter);
    CHECK_FALSE(s.driver.shown("##palette query"));
  };
  pick("light theme");
  CHECK(s.state().view.theme == "light");
  s.driver.frames(3);
  CHECK(s.app.window().theme().id == "light");
  pick("layer 0 head 1");
  CHECK(s.state().document.selected == HeadId{0, 1});
  s.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  s.driver.key(ImGuiKey_Escape);
  CHECK_FALSE(s.driver.shown("##palette query"));
}

TEST_CASE("a session is saved through the dialog and opens again with the same head and theme") {
  HEADSCOPE_NEEDS_DISPLAY();
  const std::filesystem::path folder = scratch_dir("gui-session");
  {
    Controller s;
    s.app.settings().save_folder = folder;
    s.app.explorer().editor.select({1, 1});
    s.app.explorer().editor.view().theme = "projector";
    s.driver.key(ImGuiKey_S, ImGuiMod_Ctrl);
    REQUIRE(s.driver.until([&] { return s.app.settled(); }));  // the folder is listed
    s.driver.click("Save");
    REQUIRE(s.driver.until([&] { return s.app.explorer().jobs.message().has_value(); }));
    CHECK(std::filesystem::exists(folder / "session.json"));
    CHECK(s.app.explorer().jobs.message()->level == Message::Level::info);
    s.driver.click("Dismiss");
    CHECK_FALSE(s.app.explorer().jobs.message());
  }
  AppOptions again = hidden();
  again.session = folder / "session.json";
  Controller s(again);
  CHECK(s.state().document.selected == HeadId{1, 1});
  CHECK(s.app.window().theme().id == "projector");
}

TEST_CASE("the view is exported through the dialog, as PNG, SVG, PDF and numbers, and the message names the file") {
  HEADSCOPE_NEEDS_DISPLAY();
  const std::filesystem::path folder = scratch_dir("gui-export");
  Controller s;
  s.app.settings().save_folder = folder;
  s.app.explorer().editor.select({1, 1});
  const auto exported = [&](const char* format, const char* file) {
    s.driver.key(ImGuiKey_E, ImGuiMod_Ctrl);
    s.driver.click(format);
    REQUIRE(s.driver.until([&] { return s.app.settled(); }));
    s.driver.click("Export");
    REQUIRE(s.driver.until([&] { return s.app.explorer().jobs.message().has_value(); }));
    CAPTURE(s.app.explorer().jobs.message()->text);
    CHECK(s.app.explorer().jobs.message()->text.find((folder / file).string()) != std::string::npos);
    s.driver.click("Dismiss");
    return read_file(folder / file);
  };
  CHECK(exported("PNG", "layer-1-head-1.png").substr(1, 3) == "PNG");
  CHECK(exported("SVG", "layer-1-head-1.svg").find("Layer 1 · Head 1") != std::string::npos);
  CHECK(exported("PDF", "layer-1-head-1.pdf").starts_with("%PDF-1.4"));
  const std::string numbers = exported("CSV", "layer-1-head-1.csv");
  const auto lines = std::count(numbers.begin(), numbers.end(), '\n');
  CHECK(lines == static_cast<std::ptrdiff_t>(s.app.explorer().results().run->trace->tokens.size()) + 1);
}

TEST_CASE("an exported picture remembers how it was made: opened, it brings that back, a page's picture its page") {
  HEADSCOPE_NEEDS_DISPLAY();
  const std::filesystem::path folder = scratch_dir("gui-recipe");
  Controller s;
  Explorer& explorer = s.app.explorer();
  s.app.settings().save_folder = folder;
  const auto export_as = [&](const char* format) {
    s.driver.key(ImGuiKey_E, ImGuiMod_Ctrl);
    s.driver.click(format);
    REQUIRE(s.driver.until([&] { return s.app.settled(); }));
    s.driver.click("Export");
    REQUIRE(s.driver.until([&] { return explorer.jobs.message().has_value(); }));
    CAPTURE(explorer.jobs.message()->text);
    CHECK(explorer.jobs.message()->text.starts_with("Written"));
    s.driver.click("Dismiss");
  };
  explorer.editor.select({1, 1});
  explorer.editor.set_edits({{{0, 1}, SetTemperature{2}}});
  explorer.editor.view().head_view = HeadView::arcs;
  REQUIRE(s.driver.until([&] { return s.app.settled(); }));
  const Document made = s.state().document;
  export_as("SVG");
  export_as("PDF");
  const PictureRecipe recipe = read_picture_recipe(folder / "layer-1-head-1.svg");
  CHECK(recipe.page == "");
  CHECK(recipe.for_print);
  REQUIRE(recipe.session);
  CHECK(recipe.session->document.edits == made.edits);

  AppContext app{explorer, s.app.settings(), s.app.requests()};
  for (const char* name : {"layer-1-head-1.svg", "layer-1-head-1.pdf"}) {
    CAPTURE(std::string(name));
    explorer.editor.set_edits({});
    explorer.editor.set_text("something else");
    explorer.editor.select({0, 0});
    explorer.editor.view().head_view = HeadView::map;
    open_path(folder / name, app);
    REQUIRE(s.driver.until([&] { return s.app.settled() && s.state().document.text == made.text; }));
    CHECK(s.state().document == made);
    CHECK(s.state().view.head_view == HeadView::arcs);
  }

  write_file_atomically(folder / "bare.svg", "<svg/>");
  open_path(folder / "bare.svg", app);
  REQUIRE(s.driver.until([&] { return explorer.jobs.message().has_value(); }));
  CHECK(explorer.jobs.message()->text.find("does not say how it was made") != std::string::npos);
  CHECK(s.state().document == made);
  s.driver.click("Dismiss");

  s.driver.key(ImGuiKey_E, ImGuiMod_Ctrl);
  s.driver.click("Without");
  CHECK_FALSE(s.app.settings().picture_recipes);
  s.driver.key(ImGuiKey_Escape);
  export_as("PNG");
  CHECK(read_recipe(folder / "layer-1-head-1.png") == "");

  s.app.requests().copy = Copy::caption;
  REQUIRE(s.driver.until([&] { return explorer.jobs.message().has_value(); }));
  const std::string caption = ImGui::GetClipboardText();
  CHECK(caption.starts_with("Attention weights of head 1.1 (LAYER.HEAD, counted from 0): "));
  CHECK(caption.find("The model was changed: ") != std::string::npos);
}

TEST_CASE("a file that is there is written over only when that is said; Enter saves, and only what is new") {
  HEADSCOPE_NEEDS_DISPLAY();
  const std::filesystem::path folder = scratch_dir("gui-replace");
  Controller s;
  s.app.settings().save_folder = folder;
  const auto open = [&](ImGuiKey key) {
    s.driver.key(key, ImGuiMod_Ctrl);
    REQUIRE(s.driver.until([&] { return s.app.settled() && s.driver.shown("##file name"); }));
  };
  open(ImGuiKey_S);
  s.driver.type("mine");  // over the proposed name, which is selected
  s.driver.key(ImGuiKey_Enter);
  REQUIRE(s.driver.until([&] { return s.app.explorer().jobs.message().has_value(); }));
  CHECK(s.app.explorer().jobs.message()->text == "Saved " + (folder / "mine.json").string());
  s.driver.click("Dismiss");

  write_file_atomically(folder / "session.json", "precious");
  open(ImGuiKey_S);
  s.driver.key(ImGuiKey_Enter);
  CHECK(s.driver.shown("Replace"));
  CHECK_FALSE(s.driver.shown("Save"));
  s.driver.key(ImGuiKey_Enter);  // once more is not a yes
  CHECK(s.driver.shown("Replace"));
  CHECK(read_file(folder / "session.json") == "precious");
  s.driver.click("Cancel");
  open(ImGuiKey_S);
  s.driver.click("Save");
  CHECK(read_file(folder / "session.json") == "precious");
  s.driver.click("Replace");
  REQUIRE(s.driver.until([&] { return s.app.explorer().jobs.message().has_value(); }));
  CHECK(read_file(folder / "session.json") != "precious");
  s.driver.click("Dismiss");

  s.app.explorer().editor.select({1, 1});
  write_file_atomically(folder / "layer-1-head-1.png", "a picture of another day");
  open(ImGuiKey_E);
  s.driver.click("Export");
  CHECK(read_file(folder / "layer-1-head-1.png") == "a picture of another day");
  s.driver.click("SVG");  // another name: nothing to be asked
  CHECK_FALSE(s.driver.shown("Replace"));
  s.driver.click("Export");
  REQUIRE(s.driver.until([&] { return s.app.explorer().jobs.message().has_value(); }));
  CHECK(std::filesystem::exists(folder / "layer-1-head-1.svg"));
  CHECK(read_file(folder / "layer-1-head-1.png") == "a picture of another day");
}

TEST_CASE("saving begins in the person's documents, wherever models were opened from") {
  HEADSCOPE_NEEDS_DISPLAY();
  const std::filesystem::path home = scratch_dir("gui-documents");
  std::filesystem::create_directories(home / "Documents");
  const std::string before = std::getenv("HOME") ? std::getenv("HOME") : "";
  setenv("HOME", home.c_str(), 1);
  setenv("XDG_CONFIG_HOME", (home / "none").c_str(), 1);
  {
    Controller s;
    s.app.settings().last_folder = headscope::testing::source_dir() / "tests" / "reference";
    s.driver.key(ImGuiKey_S, ImGuiMod_Ctrl);
    REQUIRE(s.driver.until([&] { return s.app.settled() && s.driver.shown("##file name"); }));
    s.driver.key(ImGuiKey_Enter);
    REQUIRE(s.driver.until([&] { return s.app.explorer().jobs.message().has_value(); }));
    CHECK(std::filesystem::exists(home / "Documents" / "session.json"));
    CHECK(s.app.settings().save_folder == home / "Documents");
  }
  setenv("HOME", before.c_str(), 1);
  unsetenv("XDG_CONFIG_HOME");
}

TEST_CASE("a model is opened by clicking through the dialog; a folder without one is refused in words") {
  HEADSCOPE_NEEDS_DISPLAY();
  Controller s;
  s.app.explorer().editor.set_text("Mr and Mrs");  // short enough for a context of 48
  s.app.settings().last_folder = headscope::testing::source_dir() / "tests" / "reference";
  s.driver.key(ImGuiKey_O, ImGuiMod_Ctrl);
  s.driver.click("gpt2-random");
  s.driver.click("Open");
  REQUIRE(s.driver.until(
      [&] { return s.app.settled() && s.app.explorer().results().model_folder.filename() == "gpt2-random"; }));
  CHECK(s.app.settings().recent_models.front().filename() == "gpt2-random");

  const std::filesystem::path empty = scratch_dir("gui-empty");
  UiRequests requests;
  AppContext app{s.app.explorer(), s.app.settings(), requests};
  open_path(empty, app);
  REQUIRE(s.driver.until([&] {  // says which folder; the message of the text too long for the model gives way
    return s.app.explorer().jobs.message() &&
           s.app.explorer().jobs.message()->text.find("gui-empty") != std::string::npos;
  }));
  CHECK(s.app.explorer().jobs.message()->level == Message::Level::error);
  CHECK(s.app.explorer().results().run);  // and the last good picture stays
}

TEST_CASE("a single file opens as a model does, and stays among the recent ones") {
  HEADSCOPE_NEEDS_DISPLAY();
  Controller s;
  s.app.explorer().editor.set_text("Mr and Mrs");
  const std::filesystem::path whole = headscope::testing::reference("gpt2-random"), folder = scratch_dir("gui-file");
  for (const char* name : {"config.json", "vocab.json", "merges.txt"})
    std::filesystem::copy_file(whole / name, folder / name);
  for (const char* name : {"one.safetensors", "other.safetensors"})
    std::filesystem::copy_file(whole / "model.safetensors", folder / name);
  UiRequests requests;
  AppContext app{s.app.explorer(), s.app.settings(), requests};
  const auto opens = [&](const std::filesystem::path& path, const std::filesystem::path& as) {
    open_path(path, app);
    CHECK(s.driver.until([&] { return s.app.settled() && s.app.explorer().results().model_folder == as; }));
    CHECK(s.app.settings().recent_models.front() == as);
  };
  opens(folder / "other.safetensors", folder / "other.safetensors");
  opens(whole / "model.safetensors", whole);  // what the folder stands for
}

TEST_CASE("a long load says what it opens and how far it is; Stop leaves the model that was there") {
  HEADSCOPE_NEEDS_DISPLAY();
  const std::filesystem::path folder = scratch_dir("gui-slow") / "slow-model";
  headscope::testing::write_random_gpt2(folder, 2, 2, 16, 32);
  // A lease on the last file of the folder: who opens it waits until it is given back. A disk as slow as the test wants
  // it.
  std::signal(SIGIO, SIG_IGN);  // how the holder is told that somebody waits
  const int lease = ::open((folder / "merges.txt").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(lease >= 0);
  if (::fcntl(lease, F_SETLEASE, F_WRLCK) != 0) {
    ::close(lease);
    MESSAGE("skipped: no leases on the file system of temporary files");
    return;
  }
  const auto let_go = [&] { ::close(lease); };

  Controller s;
  const std::string before = s.app.explorer().results().model_folder.filename().string();
  const Trace* trace = s.app.explorer().results().run->trace.get();
  UiRequests requests;
  AppContext app{s.app.explorer(), s.app.settings(), requests};
  open_path(folder, app);
  REQUIRE(s.driver.until([&] { return s.driver.shown("Stop"); }, 100000));
  CHECK(s.app.explorer().jobs.status().doing == "opening slow-model");
  CHECK(s.app.explorer().jobs.status().progress > 0.5f);  // the weights are read
  s.driver.click("Stop");
  let_go();
  REQUIRE(s.driver.until([&] { return s.app.settled(); }, 100000));
  s.driver.frames(5);  // what is made is taken in with the next frame
  CHECK(s.app.explorer().results().model_folder.filename() == before);
  CHECK(s.app.explorer().results().run->trace.get() == trace);
  CHECK_FALSE(s.app.explorer().jobs.message());
  CHECK_FALSE(s.driver.shown("Stop"));
}

TEST_CASE("the window comes back where it was and as large, but not where no screen is") {
  HEADSCOPE_NEEDS_DISPLAY();
  const std::filesystem::path file = scratch_dir("gui-place") / "settings.json";
  Settings settings;
  settings.window_width = 1000, settings.window_height = 700;
  settings.window_position = {{120, 80}};
  save_settings(settings, file);
  const auto open_and_close = [&] {
    AppOptions options;
    options.settings = file;
    App app(options);
    const auto place = app.window().position();
    app.window().close();
    app.run();
    return place;
  };
  CHECK(open_and_close() == std::pair{120, 80});
  const Settings kept = load_settings(file).settings;
  CHECK(kept.window_position == std::pair{120, 80});
  CHECK(kept.window_width == 1000);
  CHECK(kept.window_height == 700);

  settings.window_position = {{20000, 80}};  // the second screen is gone
  save_settings(settings, file);
  const auto place = open_and_close();
  REQUIRE(place);
  CHECK(place->first < 10000);
}

TEST_CASE("a screenshot is the window's own frame, of the size that was asked for") {
  HEADSCOPE_NEEDS_DISPLAY();
  const std::filesystem::path file = scratch_dir("gui-screenshot") / "window.png";
  AppOptions options;
  options.screenshot = file;
  options.width = 1000, options.height = 700;
  App(options).run();
  const std::string bytes = read_file(file);
  REQUIRE(bytes.size() > 1000);
  const auto number = [&](std::size_t at) {
    return static_cast<unsigned char>(bytes[at + 2]) * 256 + static_cast<unsigned char>(bytes[at + 3]);
  };
  CHECK(number(16) == 1000);  // IHDR
  CHECK(number(20) == 700);
}

TEST_CASE("the columns come to rest at every height: no scroll bar comes and goes") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (int height = 860; height <= 1020; height += 12) {
    CAPTURE(height);
    headscope::testing::AnalysePage page("tiny-gpt2", 1600, height);  // requires that it settles
    page.driver.frames(20);
    CHECK(page.app.settled());
  }
}

TEST_CASE("closing while a model runs is clean") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = hidden();
  App app(options);
  app.frame();
  app.explorer().editor.set_text(std::string(300, 'a'));
  app.frame();
}

}  // namespace headscope::app_test
