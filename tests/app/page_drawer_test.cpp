// Pictures of pages drawn again from what their files remember: by the command line, without a window.

#include "app/state/page_drawer.h"

#include <doctest/doctest.h>

#include "app/state/controller_controls.h"
#include "app/state/exports.h"
#include "app/state/film.h"
#include "app/state/mechanism_controller.h"
#include "app/state/page_picture.h"
#include "app/state/positions_controller.h"
#include "core/attention/positions/position_methods.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/version.h"
#include "tests/app/explorer_controller.h"
#include "tests/support/process.h"
#include "viz/export/pango_text.h"
#include "viz/export/recipe_note.h"

namespace headscope::page_drawer_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {
/// The pages as the window holds them.
struct Pages : Controller {
  PositionsController positions{explorer.jobs, explorer.editor, explorer.run};
  MechanismController mechanisms{explorer.jobs, explorer.editor, explorer.run};

  explicit Pages(const char* model, const char* text = "Anna sold the pies and she kept the milk for Anna") {
    explorer.run.open_model(source_dir() / "models" / model);
    explorer.editor.set_text(text);
    settle();
    REQUIRE(results().run);
    explorer.editor.select({1, 0});  // by a person: Mechanisms shows no softer one then
    settle();
  }
  void show(bool of_positions) {
    for (int i = 0; i < 3; ++i) {
      if (of_positions)
        positions.update();
      else
        mechanisms.frame(true, true);
      settle();
    }
  }
  PictureRecipe recipe(bool of_positions, const std::string& id, Room room) {
    const std::string workspace = of_positions ? "Positions" : "Mechanisms";
    PictureRecipe out;
    out.program = program_version;
    out.device = explorer.jobs.processor()->name();
    out.session = explorer.files.session();
    ControlsRecord record;
    of_positions ? controls_of(positions, record) : controls_of(mechanisms, record);
    out.session->window = {workspace,
                           {{workspace, of_positions ? positions.view.method : std::string(mechanisms.mechanism().id)}},
                           {{workspace, record.text()}}};
    out.page = "a page";
    out.picture = {id, room.width, room.height};
    return out;
  }
  /// Writes the picture as the window does.
  void write(const PictureRecipe& recipe, bool of_positions, const std::string& title, const fs::path& file) {
    const std::string& id = recipe.picture->id;
    const PagePicture found = of_positions ? positions_picture(positions, id) : mechanism_picture(mechanisms, id);
    CAPTURE(id);
    REQUIRE(found.source);
    const Room room{recipe.picture->width, recipe.picture->height};
    const auto bare = [found, room](const Style& style) { return found.build(room, style); };
    ExportOptions options{file, recipe.dpi, recipe.for_print};
    options.note.recipe = to_json(recipe);
    export_scene(explorer.jobs, explorer.state().view.theme,
                 kind_of_file(file) == FileKind::csv ? std::function<Scene(const Style&)>(bare) : for_file(bare, title),
                 options);
    settle();
    REQUIRE(message().starts_with("Written: "));
  }
};

void drawn_the_same(const fs::path& file) {
  const Finished again = run_cli({"render", "--again", file.string()});
  CAPTURE(again.err);
  CHECK(again.code == 0);
  CHECK(again.out == "the same as " + file.string() + "\n");
}
}  // namespace

TEST_CASE("every picture of positions is drawn again to the pixel, whatever its controls") {
  const fs::path folder = scratch_dir("page-positions");
  Pages pages("tiny-llama");
  PositionsView& view = pages.positions.view;
  view.base = 700, view.scaling = RotaryConfig::Scaling::yarn, view.factor = 3;
  view.ramp = RotaryConfig::Ramp::turns;
  view.query = 7, view.key = 2, view.shift = 5;
  view.dimensions = 20, view.positions = 40, view.position = 9;
  view.window = 2, view.buckets = 8, view.max_distance = 17, view.both_directions = true;
  view.chunk = 11, view.head = 1, view.seed = 4;
  const std::pair<const char*, const char*> all[] = {{"rope", "dials"},
                                                     {"rope", "score maps"},
                                                     {"rope", "wavelengths"},
                                                     {"rope", "score curve"},
                                                     {"rope", "why"},
                                                     {"rope", "score by positions"},
                                                     {"none", "none"},
                                                     {"sinusoidal", "sinusoidal"},
                                                     {"binary", "binary"},
                                                     {"shaw", "shaw"},
                                                     {"transformer-xl", "transformer-xl"},
                                                     {"deberta", "deberta"},
                                                     {"t5", "t5"},
                                                     {"chunks", "chunks"},
                                                     {"alibi", "alibi"}};
  for (const auto& [method, id] : all) {
    CAPTURE(id);
    view.method = method;
    pages.show(true);
    const fs::path file = folder / (std::string(id) + ".png");
    const Scene bare = positions_picture(pages.positions, id).build({731, 402}, {theme("print"), PangoText()});
    const std::string title = picture_title(std::string(find_position_method(method)->title), bare.title, id);
    pages.write(pages.recipe(true, id, {731, 402}), true, title, file);
    drawn_the_same(file);
    const fs::path numbers = folder / (std::string(id) + ".csv");
    pages.write(pages.recipe(true, id, {731, 402}), true, "", numbers);  // numbers have no title
    drawn_the_same(numbers);
  }
}

TEST_CASE("every picture of a mechanism is drawn again to the pixel, at its token, with what is folded") {
  const fs::path folder = scratch_dir("page-mechanisms");
  Pages pages("tiny-llama");
  pages.mechanisms.source().first = 7;
  pages.mechanisms.changed_source();
  struct Case {
    const char *mechanism, *id;
  };
  const Case all[] = {{"linear", "mechanism compare"},
                      {"linear", "mechanism steps"},
                      {"linear", "mechanism states"},
                      {"flash", "mechanism machine"},
                      {"low-rank", "curve 0"}};
  for (const auto& [mechanism, id] : all) {
    CAPTURE(id);
    pages.mechanisms.choose(mechanism);
    pages.show(false);
    pages.mechanisms.token = 3;
    if (const auto& steps = pages.mechanisms.page()->result.steps; !steps.empty())
      pages.mechanisms.folded = {steps.front().id, steps.back().id};
    for (const MechanismParameter& p : pages.mechanisms.mechanism().parameters)
      if (p.kind == MechanismParameter::Kind::whole) pages.mechanisms.set_value(p.name, std::min(p.high, p.low + 1));
    pages.show(false);
    const fs::path numbers = folder / (std::string(id) + ".csv");
    pages.write(pages.recipe(false, id, {700, 180}), false, "", numbers);
    drawn_the_same(numbers);
    const fs::path file = folder / (std::string(id) + ".svg");
    const std::string name(pages.mechanisms.mechanism().name);
    const Scene bare = mechanism_picture(pages.mechanisms, id).build({700, 180}, {theme("print"), PangoText()});
    pages.write(pages.recipe(false, id, {700, 180}), false, picture_title(name, bare.title, id), file);
    drawn_the_same(file);
  }
}

TEST_CASE("a film of a page's control is made again to the byte; what only a window draws says so") {
  const fs::path folder = scratch_dir("page-film");
  Pages pages("tiny-llama");
  pages.positions.view.method = "sinusoidal";
  pages.show(true);
  FilmChoice choice;
  choice.picture = pages.recipe(true, "sinusoidal", {520, 300});
  choice.place = "/session/window/controls/Positions/sinusoidal/position";
  choice.around = "{}";
  const PictureRecipe film = film_of(choice, {"1", "5", "20"}, 0.2, true);
  std::vector<std::function<Scene(const Style&)>> pictures;
  for (const int position : {1, 5, 20}) {
    pages.positions.view.position = position;
    pages.show(true);
    const PagePicture found = positions_picture(pages.positions, "sinusoidal");
    const auto bare = [found](const Style& style) { return found.build({520, 300}, style); };
    const std::string title = bare({theme("print"), PangoText()}).title;  // it names the position
    pictures.push_back(
        for_file(bare, picture_title(std::string(find_position_method("sinusoidal")->title), title, "sinusoidal")));
  }
  for (const char* name : {"a.gif", "a.apng"}) {
    const fs::path file = folder / name;
    export_film(pages.explorer.jobs, "dark", {file, 0.2, true}, to_json(film), pictures, {file, film.dpi, true});
    pages.settle();
    REQUIRE(pages.message() == "Written: " + file.string() + "  4 pictures, 0.8 s");
    const fs::path anew = folder / (std::string("b") + name);
    const Finished again = run_cli({"render", "--again", file.string(), "-o", anew.string()});
    CAPTURE(again.err);
    CHECK(again.out == anew.string() + "\nthe same as " + file.string() + "\n");
    CHECK(read_recipe(file) == read_recipe(anew));
  }
  const Ctx ctx{pages.explorer.jobs.backend() ? *pages.explorer.jobs.backend() : *pages.explorer.jobs.processor()};
  const auto refused = [&](PictureRecipe recipe) {
    try {
      draw_page(recipe, "x.png", folder / "x.png", true, {}, ctx);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("drawn");
  };
  PictureRecipe recipe = pages.recipe(true, "no such picture", {520, 300});
  CHECK(refused(recipe).find("no such picture of the workspace Positions") != std::string::npos);
  recipe.session->window.workspace = "Analyse";
  CHECK(refused(recipe).find("of the workspace Analyse") != std::string::npos);
  recipe = pages.recipe(true, "sinusoidal", {520, 300});
  recipe.session->document.model = folder / "none";
  CHECK(refused(recipe).find("none") != std::string::npos);
  recipe.session->document.model.clear();
  CHECK(refused(recipe).find("a model and a text") != std::string::npos);
  recipe = pages.recipe(false, "mechanism compare", {520, 300});
  ControlsRecord hand;
  auto kind = MechanismSource::Kind::hand;
  hand.field("source", kind, kind);
  recipe.session->window.controls["Mechanisms"] = hand.text();
  CHECK(refused(recipe).find("matrices that were made by hand") != std::string::npos);
}

}  // namespace headscope::page_drawer_test
