// Films from the window: the dialog under the mouse, the film's file and frames.

#include <doctest/doctest.h>

#include "core/base/file.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "viz/export/recipe_note.h"

namespace headscope::gui_film_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {
std::size_t frames_of(const std::string& apng) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = apng.find("fcTL", at)) != std::string::npos; ++at) ++count;
  return count;
}

void type_into(Driver& driver, const char* field, const char* text) {
  driver.click(field);
  driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  driver.type(text);
}

/// Opens it from the menu of exports.
void ask_for_film(Explore& e, const fs::path& folder) {
  e.app.settings().save_folder = folder;
  e.app.requests().dialog = UiRequests::Dialog::export_film;
  e.driver.frames(3);
  REQUIRE(e.driver.until([&] { return e.app.settled(); }));
}

std::string written(Explore& e) {
  REQUIRE(e.driver.until([&] { return e.app.explorer().jobs.message().has_value(); }, 3000));
  return e.app.explorer().jobs.message()->text;
}
}  // namespace

TEST_CASE("a film of a head's temperature is asked for by mouse, and made again by its recipe") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-film");
  Explore e(1280, 720);
  e.app.explorer().editor.select({1, 1});
  REQUIRE(e.settle());
  ask_for_film(e, folder);
  type_into(e.driver, "##film from", "0.5");
  type_into(e.driver, "##film to", "x");
  e.driver.click("APNG");
  e.driver.frames(2);
  e.driver.click("Export");  // does nothing: there is no such number
  e.driver.frames(3);
  CHECK(e.driver.shown("##film to"));
  type_into(e.driver, "##film to", "4");
  type_into(e.driver, "##film pictures", "4");
  e.driver.click("There and back");
  e.driver.frames(2);
  e.driver.click("Export");
  const fs::path file = folder / "layer-1-head-1.apng";
  CHECK(written(e) == "Written: " + file.string() + "  6 pictures, 0.6 s");
  CHECK(frames_of(read_file(file)) == 6);
  CHECK(e.state().document.edits.empty());
  const Finished again = run_cli({"render", "--again", file.string()});
  CAPTURE(again.err);
  CHECK(again.out == "the same as " + file.string() + "\n");
}

}  // namespace headscope::gui_film_test
