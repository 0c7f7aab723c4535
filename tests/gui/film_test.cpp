// Films from the window: the dialog under the mouse, the film's file and frames.

#include <doctest/doctest.h>

#include "app/state/film.h"
#include "app/state/page_drawer.h"
#include "core/base/file.h"
#include "core/edits/temperature_edit.h"
#include "core/io/picture.h"
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
  REQUIRE(e.driver.until([&] { return e.app.explorer().jobs.message().has_value(); },
                         20'000));  // a busy machine draws many frames meanwhile
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
  // It is made again without the window, to the byte.
  REQUIRE(recipe.picture);
  CHECK(recipe.device.starts_with("CPU f32, "));
  CHECK(recipe.weights == e.results().run->trace->model.dtype);
  const Ctx ctx{*e.app.explorer().jobs.processor()};
  draw_page(recipe, "film", folder / "anew.apng", true, {}, ctx);
  fs::path filmed;
  for (const auto& each : fs::directory_iterator(folder))
    if (each.path().filename() != "anew.apng") filmed = each.path();
  CHECK(read_file(filmed) == read_file(folder / "anew.apng"));
}

namespace {
/// Exports the largest picture that is shown, and draws it once more without the window.
void exported_and_drawn_anew(Explore& e, const fs::path& folder) {
  int quiet = 0;
  REQUIRE(e.driver.until([&] { return (quiet = e.app.settled() ? quiet + 1 : 0) > 10; }, 20'000));
  e.app.explorer().jobs.dismiss();
  e.driver.key(ImGuiKey_E, ImGuiMod_Ctrl);
  e.driver.frames(3);
  REQUIRE(e.driver.until([&] { return e.app.settled(); }, 20'000));  // till its folder is read, nothing can be pressed
  e.driver.click("Export");
  const std::string said = written(e);
  CAPTURE(said);
  REQUIRE(said.starts_with("Written: "));
  const fs::path file = said.substr(9, said.find("  ") - 9);
  const PictureRecipe recipe = read_picture_recipe(file);
  REQUIRE(recipe.picture);
  CAPTURE(recipe.page);
  const Ctx ctx{*e.app.explorer().jobs.processor()};
  draw_page(recipe, "picture", folder / "anew.png", true, {}, ctx);
  CHECK(read_picture(file) == read_picture(folder / "anew.png"));
  fs::remove(file);
}
}  // namespace

TEST_CASE("the picture of every page of positions, and of a mechanism, is drawn again to the pixel without a window") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-page-again");
  AppOptions options = Explore::options(1280, 720);
  options.example = "tiny-llama";
  Explore e(options);
  PositionsController controller(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run);
  PositionsWorkspace positions(controller);
  MechanismsWorkspace mechanisms(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run);
  e.app.add(positions);
  e.app.add(mechanisms);
  e.app.settings().save_folder = folder;
  e.driver.frames(2);
  e.driver.click("Positions");
  for (const char* page :
       {"rope", "none", "sinusoidal", "binary", "shaw", "transformer-xl", "deberta", "t5", "chunks", "alibi"}) {
    CAPTURE(page);
    e.app.settings().pages["Positions"] = page;
    exported_and_drawn_anew(e, folder);
  }
  e.driver.click("Mechanisms");
  e.app.settings().pages["Mechanisms"] = "linear";
  for (const MechanismView view : {MechanismView::compare, MechanismView::steps, MechanismView::recurrent}) {
    mechanisms.controller().view = view;
    CAPTURE(static_cast<int>(view));
    exported_and_drawn_anew(e, folder);
  }
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

TEST_CASE("a page is filmed while a model is being trained, which goes on") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-film-beside-training");
  AppOptions options = Explore::options(1280, 720);
  options.example = "tiny-llama";
  Explore e(options);
  TrainingController training(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run);
  TrialController trials(e.app.explorer().jobs);
  TrainWorkspace train(training, trials);
  PositionsController controller(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run);
  PositionsWorkspace positions(controller);
  e.app.add(positions);
  e.app.add(train);
  e.driver.frames(2);
  training.draft() = testing::small_recipe();
  training.draft().steps = training.draft().optimizer.schedule_steps = 1'000'000;
  training.start();
  REQUIRE(e.driver.until([&] { return training.moments().size() >= 2; }, 20'000));
  e.driver.click("Positions");
  REQUIRE(e.driver.until([&] { return controller.vectors() != nullptr; }, 20'000));
  e.driver.frames(40);
  const std::int64_t step = training.progress().step;
  e.app.settings().save_folder = folder;
  e.driver.click("Export ▾");
  e.driver.click("Export a film: one number changes…");
  REQUIRE(e.driver.until([&] { return e.driver.shown("what changes"); }, 2000));
  e.driver.click("what changes");
  e.driver.click("film key");
  type_into(e.driver, "##film from", "0");
  type_into(e.driver, "##film to", "8");
  type_into(e.driver, "##film pictures", "3");
  e.driver.click("APNG");
  e.driver.frames(2);
  e.driver.click("Export");
  const PictureRecipe recipe = written_film(e);
  CHECK(recipe.film->values == std::vector<std::string>{"0", "4", "8"});
  CHECK(training.phase() == TrainingController::Phase::running);
  CHECK(training.progress().step > step);
  training.stop();
}

}  // namespace headscope::gui_film_test
