// Films: the values from picture to picture, what can change, the assembly, and the same film again.

#include "app/state/film.h"

#include <doctest/doctest.h>

#include "app/state/exports.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/temperature_edit.h"
#include "core/io/picture.h"
#include "tests/app/explorer_controller.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "viz/export/png.h"
#include "viz/export/recipe_note.h"

namespace headscope::film_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {
using Words = std::vector<std::string>;

const FilmChoice& choice(const std::vector<FilmChoice>& all, const std::string& name) {
  for (const FilmChoice& each : all)
    if (each.name == name) return each;
  CAPTURE(name);
  REQUIRE(false);
  return all.front();
}
}  // namespace

TEST_CASE("values go from the first to the last by equal steps, equal factors, or whole numbers") {
  CHECK(film_values({0, 1, 5}) == Words{"0", "0.25", "0.5", "0.75", "1"});
  CHECK(film_values({0.5, 4, 4, true}) == Words{"0.5", "1", "2", "4"});
  CHECK(film_values({2, 1, 3}) == Words{"2", "1.5", "1"});
  CHECK(film_values({0, 3, 9, false, true}) == Words{"0", "1", "2", "3"});
  CHECK(film_values({0.1, 0.3, 3}) == Words{"0.1", "0.2", "0.3"});
  const Words many = film_values({0.2, 5, 24, true});
  CHECK(many.size() == 24);
  CHECK(many.front() == "0.2");
  CHECK(many.back() == "5");
}

TEST_CASE("a film of the head is made again to the byte by render --again, and a series picture by picture") {
  const auto folder = scratch_dir("film");
  Controller controller;
  Explorer& explorer = controller.explorer;
  explorer.run.open_model(source_dir() / "models/tiny-gpt2");
  explorer.editor.set_text("Anna sold pies");
  explorer.editor.select({0, 1});
  controller.settle();
  REQUIRE(controller.results().run);
  PictureRecipe shown;
  shown.program = "0.1.0";
  shown.session = explorer.files.session();
  const auto choices = film_choices(shown, controller.results().run->trace.get(), {});
  for (const char* name : {"Temperature of head 0.1", "Temperature of layer 0", "Temperature of all heads", "Layer"})
    choice(choices, name);
  const PictureRecipe film = film_of(choices.front(), film_values({0.5, 4, 4, true}), 0.2, true);
  CHECK(film.session->document.edits == std::vector<Intervention>{{{0, 1}, SetTemperature{0.5}}});
  CHECK(picture_of_film(film, 1).session->document.edits == std::vector<Intervention>{{{0, 1}, SetTemperature{1}}});
  CHECK(picture_recipe_from_json(to_json(film), "film") == film);
  for (const char* name : {"a.gif", "a.apng"}) {
    const fs::path file = folder / name, anew = folder / (std::string("b") + name);
    export_film(explorer.jobs, controller.results().model, film, file, true);
    controller.settle();
    CHECK(controller.message() == "Written: " + file.string() + "  6 pictures, 1.2 s");
    const Finished again = run_cli({"render", "--again", file.string(), "-o", anew.string()});
    CAPTURE(again.err);
    CHECK(again.out == anew.string() + "\nthe same as " + file.string() + "\n");
    CHECK(read_recipe(file) == to_json(film));
  }
  // Its pictures are those of `render`.
  export_film(explorer.jobs, controller.results().model, film, folder / "s.png", true);
  controller.settle();
  const fs::path direct = folder / "direct.png";
  REQUIRE(run_cli({"render", "-m", (source_dir() / "models/tiny-gpt2").string(), "-t", "Anna sold pies", "--head",
                   "0.1", "--temperature", "0.1=4", "--theme", "print", "-o", direct.string()})
              .code == 0);
  CHECK(read_picture(folder / "s-3.png") == read_picture(direct));
  CHECK_FALSE(fs::exists(folder / "s-4.png"));
  CHECK(run_cli({"render", "--again", (folder / "s-1.png").string()}).code == 0);

  export_film(explorer.jobs, controller.results().model, film, folder / "none/a.gif", true);
  controller.settle();
  CHECK(controller.message().find("none/a.gif") != std::string::npos);
  export_film(explorer.jobs, controller.results().model, film, folder / "plain.gif", false);
  controller.settle();
  CHECK(read_recipe(folder / "plain.gif") == "");
  export_film(explorer.jobs, controller.results().model, film, folder / "stopped.gif", true);
  explorer.jobs.stop();
  controller.settle();
  CHECK_FALSE(fs::exists(folder / "stopped.gif"));
}

TEST_CASE("a text grows word by word, and is made again to the byte") {
  const auto folder = scratch_dir("film-growing");
  Controller controller;
  Explorer& explorer = controller.explorer;
  explorer.run.open_model(source_dir() / "models/tiny-gpt2");
  explorer.editor.set_text("Anna sold \"warm\"\npies. ");
  explorer.editor.pin(3, 1);  // which the first texts do not have
  controller.settle();
  REQUIRE(controller.results().run);
  PictureRecipe shown;
  shown.program = "0.1.0";
  shown.session = explorer.files.session();
  const FilmChoice growing =
      choice(film_choices(shown, controller.results().run->trace.get(), {}), "Words of the text");
  CHECK(growing.range.from == 1);
  CHECK(growing.seconds == 0.5);
  CHECK(growing.range.whole);
  CHECK(growing.high == growing.range.to);
  CHECK(growing.range.pictures == static_cast<int>(growing.range.to));
  const PictureRecipe film = film_of(growing, film_values(growing.range), 0.1, false);
  Words texts;
  for (std::size_t i = 0; i < film.film->values.size(); ++i)
    texts.push_back(picture_of_film(film, i).session->document.text);
  CHECK(texts == Words{"Anna", "Anna sold", "Anna sold \"", "Anna sold \"warm", "Anna sold \"warm\"",
                       "Anna sold \"warm\"\n", "Anna sold \"warm\"\npies", "Anna sold \"warm\"\npies.",
                       "Anna sold \"warm\"\npies. "});
  export_film(explorer.jobs, controller.results().model, film, folder / "a.gif", true);
  controller.settle();
  CHECK(controller.message() == "Written: " + (folder / "a.gif").string() + "  9 pictures, 0.9 s");
  const Finished again = run_cli({"render", "--again", (folder / "a.gif").string(), "-o", (folder / "b.gif").string()});
  CAPTURE(again.err);
  CHECK(again.out.ends_with("the same as " + (folder / "a.gif").string() + "\n"));
  // Of scripts without spaces, and of characters that are several tokens, none is cut.
  explorer.editor.set_text("我爱🐈 Ben שלום");
  controller.settle();
  shown.session = explorer.files.session();
  const FilmChoice scripts =
      choice(film_choices(shown, controller.results().run->trace.get(), {}), "Words of the text");
  texts.clear();
  for (const std::string& each : scripts.instead) texts.push_back(each);
  CHECK(texts == Words{"\"我\"", "\"我爱\"", "\"我爱🐈\"", "\"我爱🐈 Ben\"", "\"我爱🐈 Ben שלום\""});
  // Nothing to grow: one word; ids; a text of which the trace is none.
  for (const char* text : {"Anna", "", "Ben sold pies"}) {
    shown.session->document.text = text;
    for (const FilmChoice& each : film_choices(shown, controller.results().run->trace.get(), {}))
      CHECK(each.name != "Words of the text");
  }
}

TEST_CASE("numbers of edits and of a page's controls can change; whole ones stay whole; what cannot be is refused") {
  PictureRecipe shown;
  shown.session = Session{};
  shown.session->document.edits = {parse_intervention("1.0: mask window 8", "test"),
                                   parse_intervention("*: temperature 2", "test")};
  const auto edits = film_choices(shown, nullptr, {});
  CHECK(choice(edits, "1.0: mask window …").range.whole);
  CHECK_FALSE(choice(edits, "*: temperature …").range.whole);
  const PictureRecipe masks = film_of(choice(edits, "1.0: mask window …"), {"2", "3"}, 0.1, false);
  CHECK(picture_of_film(masks, 1).session->document.edits[0] == parse_intervention("1.0: mask window 3", "test"));
  CHECK_THROWS_AS(film_of(choice(edits, "*: temperature …"), {"1", "-1"}, 0.1, false), Error);

  shown.page = "Rotary";
  shown.session->window = {"Positions", {}, {{"Positions", R"({"rotary":{"turn_by":3,"words":"a","base":1.5}})"}}};
  double base = 1.5, share = 0.25;
  std::int64_t turn_by = 3;
  int kind = 1;
  std::uint64_t seed = 7;
  ControlsRecord record;
  record.inside("rotary", [&](ControlsRecord& rotary) {
    rotary.field("base", base, 1, 1e12);
    rotary.field("turn_by", turn_by, 0, 1 << 20);
    rotary.field("share", share, 0, 1);
    rotary.choice("kind", kind, 3);
    rotary.field("seed", seed);
    rotary.offer("key", 5, 0, 9, true);  // follows the pinned cell, and stands nowhere
    rotary.offer("width", 4, 1, 64, true, true);
  });
  CHECK(record.text() == R"({"rotary":{"base":1.5,"kind":1,"seed":7,"share":0.25,"turn_by":3}})");
  const auto page = film_choices(shown, nullptr, record.numbers());
  REQUIRE(page.size() == 5);
  const auto goes = [&](const char* name, double from, double to, int pictures, bool factors, bool whole) {
    const FilmRange& range = choice(page, name).range;
    CAPTURE(name);
    CHECK(range.from == from);
    CHECK(range.to == to);
    CHECK(range.pictures == pictures);
    CHECK(range.logarithmic == factors);
    CHECK(range.whole == whole);
  };
  goes("base", 1.5, 3, 24, false, false);
  goes("turn by", 3, 26, 24, false, true);
  goes("share", 0, 1, 24, false, false);
  goes("key", 0, 9, 10, false, true);
  goes("width", 1, 64, 48, true, true);
  CHECK(choice(page, "base").high == 1e12);
  CHECK(picture_of_film(film_of(choice(page, "key"), {"4"}, 0.1, false), 0)
            .session->window.controls.at("Positions")
            .find("\"key\":4") != std::string::npos);
  const PictureRecipe turning = film_of(choice(page, "turn by"), {"3", "4"}, 0.1, false);
  CHECK(picture_of_film(turning, 1).session->window.controls.at("Positions").find("\"turn_by\":4") !=
        std::string::npos);
  CHECK(shows_picture_of(turning, 0, *shown.session));
  CHECK_FALSE(shows_picture_of(turning, 1, *shown.session));
  PictureRecipe broken = turning;
  broken.film->place = "/session/nowhere";
  CHECK_THROWS_AS(picture_of_film(broken, 0), Error);
}

TEST_CASE("a film that memory would not hold is refused once its first picture says how large they are") {
  const fs::path file = scratch_dir("film-large") / "a.gif";
  Scene scene;
  scene.width = scene.height = 1000;
  std::size_t drawn = 0;
  const auto draw = [&](std::size_t, const fs::path& to) {
    ++drawn;
    write_png(to, scene);
  };
  try {
    make_film({file, 0.1, true}, 300, draw, [](const fs::path&) { return ""; }, {});  // twice 300 frames of 4 MB
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("300 of 1000 × 1000, 2.4 GB") != std::string::npos);
  }
  CHECK(drawn == 1);
  CHECK_FALSE(fs::exists(file));
}

TEST_CASE("a picture whose recipe is a film's makes no series") {
  const auto folder = scratch_dir("film-stranger");
  Scene scene;
  scene.width = scene.height = 10;
  scene.recipe = R"({"type": "headscope picture", "version": 1, "film": {"place": "/dpi", "values": [96, 97]}, )"
                 R"("session": {"type": "headscope session", "version": 3}})";
  write_png(folder / "x.png", scene);
  const Finished again = run_cli({"render", "--again", (folder / "x.png").string(), "-o", (folder / "s.png").string()});
  CHECK(again.code == 1);
  CHECK(again.first_error().find("one of a film") != std::string::npos);
}

}  // namespace headscope::film_test
