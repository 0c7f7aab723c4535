// Films from the window: the dialog under the mouse, the film's file and frames.

#include <doctest/doctest.h>

#include "app/state/film.h"
#include "core/base/file.h"
#include "core/edits/temperature_edit.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"
#include "tests/support/small_recipe.h"

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
  e.driver.click("Export ▾");
  e.driver.click("Export a film: one number changes…");
  e.driver.frames(3);
  REQUIRE(e.driver.until([&] { return e.app.settled(); }));
}

std::string written(Explore& e) {
  REQUIRE(e.driver.until([&] { return e.app.explorer().jobs.message().has_value(); }, 3000));
  return e.app.explorer().jobs.message()->text;
}

/// The recipe of a film of three pictures that was asked for, once it is written.
PictureRecipe written_film(Explore& e) {
  const std::string said = written(e);
  CAPTURE(said);
  REQUIRE(said.starts_with("Written: "));
  CHECK(said.ends_with("3 pictures, 0.3 s"));
  const fs::path file = said.substr(9, said.find("  ") - 9);
  CHECK(frames_of(read_file(file)) == 3);
  e.driver.frames(3);
  return read_picture_recipe(file);
}

/// Films `number` of the page that is open, 0, 1, 2, and says what the film remembers.
PictureRecipe filmed(Explore& e, const fs::path& folder, const char* number) {
  ask_for_film(e, folder);
  e.driver.click("what changes");
  e.driver.click(number);
  type_into(e.driver, "##film from", "0");
  type_into(e.driver, "##film to", "2");
  type_into(e.driver, "##film pictures", "3");
  e.driver.click("APNG");
  e.driver.frames(2);
  e.driver.click("Export");
  return written_film(e);
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
  const PictureRecipe recipe = read_picture_recipe(file);  // by which tests/app/film_test.cpp makes films again
  REQUIRE(recipe.film);
  CHECK(recipe.film->values.size() == 4);
  CHECK(recipe.film->values.back() == "\"temperature 4\"");
  CHECK(picture_of_film(recipe, 1).session->document.edits == std::vector<Intervention>{{{1, 1}, SetTemperature{1}}});
}

TEST_CASE("a page is filmed by its own control, which is put back") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-film-page");
  AppOptions options = Explore::options(1280, 720);
  options.example = "tiny-llama";
  Explore e(options);
  PositionsController controller(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run);
  PositionsWorkspace workspace(controller);
  e.app.add(workspace);
  e.driver.frames(2);
  e.driver.click("Positions");
  int quiet = 0;
  REQUIRE(
      e.driver.until([&] { return (quiet = e.app.settled() && controller.vectors() ? quiet + 1 : 0) > 10; }, 20'000));
  const Index query = controller.query(), key = controller.key();
  ask_for_film(e, folder);
  const auto own = e.app.explorer().files.session().window.controls;
  e.driver.click("what changes");
  e.driver.click("film key");
  type_into(e.driver, "##film from", "-1");  // no key
  e.driver.frames(2);
  e.driver.click("Export");  // does nothing
  e.driver.frames(3);
  CHECK(e.driver.shown("##film to"));
  type_into(e.driver, "##film from", "0");
  type_into(e.driver, "##film to", "8");
  type_into(e.driver, "##film pictures", "3");
  e.driver.click("APNG");
  e.driver.frames(2);
  e.driver.click("Export");
  e.driver.frames(2);
  CHECK(e.driver.shown("Stop filming"));
  const PictureRecipe recipe = written_film(e);
  CHECK(e.app.explorer().files.session().window.controls == own);
  CHECK(controller.query() == query);
  CHECK(controller.key() == key);
  CHECK(recipe.film->values == std::vector<std::string>{"0", "4", "8"});
  CHECK_FALSE(recipe.page.empty());
}

TEST_CASE(
    "a training is filmed moment by moment, and a written text step by step; both are shown at their end behind") {
  HEADSCOPE_NEEDS_DISPLAY();
  const std::vector<std::string> three{"0", "1", "2"};
  {
    Explore e(1280, 720);
    TrainingController controller(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run);
    TrialController trials(e.app.explorer().jobs);
    TrainWorkspace workspace(controller, trials);
    e.app.add(workspace);
    e.driver.frames(2);
    e.driver.click("Train");
    Recipe& draft = controller.draft();
    draft = testing::small_recipe();
    draft.steps = draft.optimizer.schedule_steps = 1'000'000;
    e.driver.frames(2);
    e.driver.click("Start training");
    REQUIRE(e.driver.until([&] { return controller.moments().size() >= 3; }, 20'000));
    controller.pause();
    REQUIRE(e.driver.until([&] { return e.app.settled(); }, 20'000));
    const PictureRecipe film = filmed(e, scratch_dir("gui-film-training"), "film moment");
    CHECK(film.film->values == three);
    CHECK_FALSE(controller.shown());
    CHECK(controller.moment() == &controller.moments().back());
    controller.stop();
  }
  AppOptions options = Explore::options(1280, 720);
  options.text = "By the harbour, Ben the weaver was";
  Explore e(options);
  GenerationController controller(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run,
                                  e.app.explorer().files);
  GenerateWorkspace workspace(controller);
  e.app.add(workspace);
  controller.settings().past_end = true;
  controller.write_at_once(4);
  e.driver.frames(2);
  e.driver.click("Generate");
  REQUIRE(e.driver.until([&] { return controller.branch().steps.size() == 4 && e.app.settled(); }, 3000));
  const PictureRecipe film = filmed(e, scratch_dir("gui-film-writing"), "film step");
  CHECK(film.film->values == three);
  CHECK(controller.cursor() == 4);
}

}  // namespace headscope::gui_film_test
