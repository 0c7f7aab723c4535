// The pages that concern the program: settings, about, the list of steps; and the clipboard.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "core/base/file.h"
#include "core/tensor/backend.h"
#include "tests/gui/analyse_page.h"
#include "tests/support/paths.h"

namespace headscope::pages_test {

using testing::AnalysePage;
using testing::Explore;
using testing::scratch_dir;

TEST_CASE("settings open with Ctrl+, and from the palette; what is chosen applies at once and is written down") {
  HEADSCOPE_NEEDS_DISPLAY();
  const auto folder = scratch_dir("gui-settings");
  AppOptions options = Explore::options(1280, 720);
  options.settings = folder / "settings.json";
  Explore e(options);
  e.driver.key(ImGuiKey_Comma, ImGuiMod_Ctrl);
  e.driver.frames(2);
  e.driver.click("Light");
  e.driver.frames(3);
  CHECK(e.app.window().theme().id == "light");
  const float before = e.driver.item("Light").max.y - e.driver.item("Light").min.y;
  e.driver.click("125 %");
  e.driver.frames(3);
  CHECK(e.driver.item("Light").max.y - e.driver.item("Light").min.y > 1.1f * before);
  e.driver.click("100 %");
  e.driver.frames(3);
  e.driver.click("1");  // thread
  e.driver.click("256 MB");
  REQUIRE(e.settle());
  CHECK(e.app.explorer().jobs.backend()->described().find("1 thread") != std::string::npos);
  CHECK(e.results().run->request.capture.byte_budget == std::size_t{256} << 20);  // it ran again
  e.driver.click("##Documents");
  e.driver.type(folder.string());
  e.driver.frames(2);
  e.driver.click("Close");
  e.driver.frames(2);
  const Settings kept = load_settings(options.settings).settings;
  CHECK(kept.theme == "light");
  CHECK(kept.ui_scale == 1);
  CHECK(kept.threads == 1);
  CHECK(kept.memory_mb == 256);
  CHECK(kept.documents_folder == folder);
  CHECK(kept.models_folder.empty());

  e.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  e.driver.type("settings");
  e.driver.key(ImGuiKey_Enter);
  e.driver.frames(2);
  CHECK(e.driver.shown("256 MB"));
}

TEST_CASE("settings choose a card by its name, and its precision; one that fails is told and can be tried again") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1280, 720);
  options.settings = scratch_dir("gui-device") / "settings.json";
  bool there = true;
  options.devices.cards = [](bool) {
    Cards cards;
    cards.found.push_back({.index = 0, .name = "NVIDIA K80", .major = 3, .minor = 7, .unusable = "too old"});
    cards.found.push_back(
        {.index = 1, .name = "NVIDIA L4", .memory = 24'000'000'000, .major = 8, .minor = 9, .unusable = ""});
    return cards;
  };
  options.devices.make = [&there](const DeviceChoice& choice, int threads, Worded& why) {
    why = choice.cuda && !there ? "The processor computes, as cuda:1 cannot be used: it went away." : "";
    return std::make_unique<Backend>(threads);
  };
  Explore e(options);
  const auto reading = e.results().model_reading;
  e.driver.key(ImGuiKey_Comma, ImGuiMod_Ctrl);
  REQUIRE(e.settle());
  e.driver.frames(3);
  CHECK(e.driver.shown("Processor"));
  CHECK_FALSE(e.driver.shown("NVIDIA K80"));
  CHECK_FALSE(e.driver.shown("TF32"));
  e.driver.click("NVIDIA L4");
  e.driver.frames(3);
  e.driver.click("TF32");
  REQUIRE(e.settle());
  const DeviceChoice chosen{.cuda = true, .index = 1, .precision = Precision::tf32};
  CHECK(e.app.explorer().jobs.device() == chosen);
  CHECK(e.results().model_device == chosen);  // opened again, and read again
  CHECK(e.results().model_reading > reading);
  CHECK_FALSE(e.app.explorer().run.behind());
  CHECK(e.driver.item("Close").max.y <= 720);
  CHECK_FALSE(e.driver.shown("Try again"));
  there = false;
  e.app.explorer().jobs.try_device_again();
  REQUIRE(e.settle());
  e.driver.frames(3);
  CHECK(e.results().model_device == DeviceChoice{});
  CHECK(e.driver.item("Close").max.y <= 720);
  there = true;
  e.driver.click("Try again");
  REQUIRE(e.settle());
  CHECK(e.results().model_device == chosen);
  e.driver.click("Close");
  e.driver.frames(2);
  CHECK(load_settings(options.settings).settings.device == chosen);
}

TEST_CASE("equal cards are told apart by their numbers, many fit, and one that fails can be tried again beside them") {
  HEADSCOPE_NEEDS_DISPLAY();
  int count = 2;
  bool there = true;
  AppOptions options = Explore::options(1280, 720);
  options.devices.cards = [&count](bool) {
    if (count == 0) throw std::runtime_error("the driver is gone");
    Cards cards;
    for (int i = 0; i < count; ++i)
      cards.found.push_back({.index = i, .name = "NVIDIA L4", .major = 8, .minor = 9, .unusable = ""});
    return cards;
  };
  options.devices.make = [&there](const DeviceChoice& choice, int threads, Worded& why) {
    why = choice.cuda && !there ? "The processor computes, as the card cannot be used: it went away." : "";
    return std::make_unique<Backend>(threads);
  };
  Explore e(options);
  const auto open = [&] {
    e.driver.key(ImGuiKey_Comma, ImGuiMod_Ctrl);
    REQUIRE(e.settle());
    e.driver.frames(3);
  };
  const auto device = [&] { return e.app.explorer().jobs.device(); };
  open();
  e.driver.click("NVIDIA L4 (1)");
  REQUIRE(e.settle());
  CHECK(device() == DeviceChoice{.cuda = true, .index = 1});
  e.driver.click("NVIDIA L4 (0)");
  REQUIRE(e.settle());
  CHECK(device() == DeviceChoice{.cuda = true, .index = 0});
  e.driver.click("Close");
  e.driver.frames(2);

  count = 16;
  open();
  const float right = std::ceil(e.driver.item("Add").max.x);
  CHECK(e.driver.shown("Card 0"));
  CHECK(e.driver.item("15").max.x <= right);
  e.driver.click("15");
  REQUIRE(e.settle());
  CHECK(device() == DeviceChoice{.cuda = true, .index = 15});
  there = false;
  e.app.explorer().jobs.try_device_again();
  REQUIRE(e.settle());
  e.driver.frames(3);
  CHECK(e.driver.item("Try again").max.x <= right);
  CHECK(e.driver.item("Close").max.y <= 720);
  e.driver.click("Close");
  e.driver.frames(2);

  count = 0;
  e.app.explorer().jobs.dismiss();
  open();
  CHECK(e.driver.shown("Processor"));
  CHECK_FALSE(e.app.explorer().jobs.message());  // the page says it, in place of "Looking for cards"
}

TEST_CASE("about names the version and every library's licence") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  e.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  e.driver.type("about headscope");
  e.driver.key(ImGuiKey_Enter);
  e.driver.frames(3);
  const Item close = e.driver.item("Close");
  CHECK(close.max.y <= 720);  // all of it fits
  e.driver.click("Close");
  e.driver.frames(2);
  CHECK_FALSE(e.driver.shown("Close"));
}

TEST_CASE("the list of steps names what was done, and a click goes there and back") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  e.driver.click("Layer 1 Head 0");
  e.driver.key(ImGuiKey_X);
  REQUIRE(e.settle());
  e.driver.click("edit 0 on");
  REQUIRE(e.settle());
  const auto steps = e.app.explorer().editor.steps();
  REQUIRE(steps.size() >= 2);
  CHECK(steps[steps.size() - 2] == "Edit 1.0: ablate zero");
  CHECK(steps.back() == "Switched off 1.0: ablate zero");
  e.driver.key(ImGuiKey_H, ImGuiMod_Ctrl);
  e.driver.frames(2);
  e.driver.click("step 0");
  REQUIRE(e.settle());
  CHECK(e.state().document.edits.empty());
  CHECK_FALSE(e.app.explorer().editor.history().can_undo());
  CHECK(e.app.explorer().editor.steps() == steps);
  e.driver.click("step " + std::to_string(steps.size() - 1));
  REQUIRE(e.settle());
  REQUIRE(e.state().document.edits.size() == 1);
  CHECK(e.state().document.edits[0].enabled);
  CHECK(e.app.explorer().editor.history().can_redo());
}

TEST_CASE("numbers go to the clipboard as lines of cells with tabs: of a head's map, of a page's largest picture") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage page("induction", 1280, 720);
  const auto copied = [&] {
    ImGui::SetClipboardText("nothing");
    ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, true);
    page.driver.key(ImGuiKey_C, ImGuiMod_Ctrl);
    ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, false);
    REQUIRE(page.driver.until([&] { return page.app.explorer().jobs.message().has_value(); }));
    CAPTURE(page.app.explorer().jobs.message()->text);
    CHECK(page.app.explorer().jobs.message()->level == Message::Level::info);
    page.driver.click("Dismiss");
    return std::string(ImGui::GetClipboardText());
  };
  page.app.explorer().editor.select({1, 0});
  REQUIRE(page.settle());
  const std::string map = copied();
  const auto tokens = static_cast<std::ptrdiff_t>(page.results().run->trace->tokens.size());
  CHECK(std::ranges::count(map, '\n') == tokens + 1);
  const std::string first = map.substr(0, map.find('\n'));
  CHECK(std::ranges::count(first, '\t') == tokens + 1);  // position, token, then its keys
  const AttentionMap& weights = page.results().run->trace->maps[4];
  std::string line;
  std::istringstream lines(map);
  for (int i = 0; i < 3; ++i) std::getline(lines, line);
  std::istringstream cells(line);
  std::string cell;
  for (int i = 0; i < 3; ++i) std::getline(cells, cell, '\t');
  CHECK(std::stof(cell) == weights.weight(1, 0));

  page.open("logit lens");
  const std::string lens = copied();
  CHECK(lens.find('\t') != std::string::npos);
  CHECK(lens.find("row_label") != std::string::npos);
}

}  // namespace headscope::pages_test
