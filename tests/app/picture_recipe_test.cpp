// Recipes of pictures: their form, and pictures of the window drawn again by the command line.

#include "app/state/picture_recipe.h"

#include <doctest/doctest.h>

#include "app/state/exports.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/ablate_edit.h"
#include "core/edits/temperature_edit.h"
#include "tests/app/explorer_controller.h"
#include "tests/support/process.h"

namespace headscope::picture_recipe_test {

using namespace testing;

namespace {
PictureRecipe of_window() {
  PictureRecipe recipe;
  recipe.program = "0.1.0";
  recipe.session.emplace();
  recipe.session->document.model = "/models/größe";
  recipe.session->document.text = "“Ünïcode” 你好 <&>\n";
  recipe.session->document.edits = {{{0, 1}, SetTemperature{2}}, {{1, 0}, Ablate{}}};
  recipe.session->document.query = 3;
  recipe.session->view.head_view = HeadView::arcs;
  recipe.session->window.workspace = "Analyse";
  recipe.session->window.pages = {{"Analyse", "sinks"}};
  recipe.dpi = 300;
  recipe.all_heads = true;
  recipe.for_print = false;
  recipe.page = "Sinks";
  recipe.picture = {"sinks", 640.5, 300};
  recipe.device = "CPU f32, AVX-512";
  recipe.weights = "BF16+F32";
  return recipe;
}
}  // namespace

TEST_CASE("a recipe is one line of ASCII and reads back as it was") {
  PictureRecipe of_command;
  of_command.program = "0.1.0";
  of_command.command = {"render", "--text=ä", "--head", "0.1"};
  of_command.folder = "/home/jörg";
  PictureRecipe of_page = of_window();
  of_page.picture.reset();
  of_page.shown = {"lens", 1500, 940, 1.25, true, true, true, "a training — “Übung”"};
  for (const PictureRecipe& recipe : {of_window(), of_command, of_page}) {
    const std::string json = to_json(recipe);
    for (const char c : json) CHECK((c >= ' ' && c <= '~'));
    CHECK(picture_recipe_from_json(json, "here") == recipe);
  }
  CHECK(computed_by(of_window()) == "CPU f32, AVX-512, weights BF16+F32");
  CHECK(computed_by(of_command) == "");
  // A file of an older version says nothing of either, nor of the picture's room.
  const PictureRecipe older = picture_recipe_from_json(
      R"({"type": "headscope picture", "version": 1, "command": ["render"], "folder": "/"})", "here");
  CHECK(older.device + older.weights == "");
  CHECK_FALSE(older.picture);
  CHECK_THROWS_WITH_AS(picture_recipe_from_json(R"({"type": "headscope picture", "version": 1, "command": ["render"],)"
                                                R"("picture": {"id": "a", "width": -1}})",
                                                "x.png"),
                       doctest::Contains("width"), Error);
  for (const char* window : {R"({"id": "a", "width": 0, "height": 9})", R"({"id": "a", "width": 100000, "height": 9})",
                             R"({"id": "a", "width": 9})", R"({"id": "a", "width": 9, "height": 9, "scale": 0})"}) {
    CAPTURE(window);
    CHECK_THROWS_AS(picture_recipe_from_json(
                        std::string(R"({"type": "headscope picture", "version": 1, "command": ["render"], "shown": )") +
                            window + "}",
                        "x.png"),
                    Error);
  }
}

TEST_CASE("what is no recipe is refused by name, and what no JSON can hold makes none") {
  CHECK_THROWS_WITH_AS(picture_recipe_from_json("{}", "x.png"), doctest::Contains("x.png"), Error);
  CHECK_THROWS_WITH_AS(picture_recipe_from_json(R"({"type": "headscope picture", "version": 2})", "x.png"),
                       doctest::Contains("version 2"), Error);
  CHECK_THROWS_WITH_AS(picture_recipe_from_json(R"({"type": "headscope picture", "version": 1, "smell": 1})", "x.png"),
                       doctest::Contains("smell"), Error);
  CHECK_THROWS_WITH_AS(picture_recipe_from_json(R"({"type": "headscope picture", "version": 1, "command": [7]})", "x"),
                       doctest::Contains("command"), Error);
  CHECK_THROWS_WITH_AS(picture_recipe_from_json(R"({"type": "headscope picture", "version": 1})", "x.png"),
                       doctest::Contains("neither"), Error);
  PictureRecipe recipe = of_window();
  recipe.session->document.text = "\xFF";
  CHECK(to_json(recipe) == "");
}

TEST_CASE("an option leaves a command line in any spelling, the last of its value, and never from behind --") {
  using Words = std::vector<std::string>;
  const Words rest{"render", "-t", "-oh no", "--head", "0.1", "--words"};
  for (const Words& out : {Words{"-o", "a.png"}, Words{"--out", "a.png"}, Words{"--out=a.png"}, Words{"-oa.png"}}) {
    Words words = rest;
    words.insert(words.begin() + 1, out.begin(), out.end());
    CHECK(without_option(words, "-o", "--out", "a.png") == rest);
  }
  CHECK(without_option({"-t", "-o", "-o", "x"}, "-o", "--out", "x") == Words{"-t", "-o"});
  CHECK(without_option({"a", "--", "-o", "x"}, "-o", "--out", "x") == Words{"a", "--", "-o", "x"});
  CHECK(without_option(rest, "-o", "--out", "a.png") == rest);
  CHECK(without_option({"x", "--again", "x", "x"}, "", "--again", "x") == Words{"x", "x"});
  CHECK(without_word({"-", "--with-text", "b", "-"}, "-") == Words{"-", "--with-text", "b"});
  Words words{"render", "--", "x"};
  add_words(words, {"-o", "a"});
  CHECK(words == Words{"render", "-o", "a", "--", "x"});
  add_words(words = {"render"}, {"-o", "a"});
  CHECK(words == Words{"render", "-o", "a"});
}

TEST_CASE("a command of many pictures keeps the text that was read, where all read the same") {
  using Words = std::vector<std::string>;
  const Words command{"render", "-f", "a.txt", "--head", "{}"}, drawn{"render", "-f", "a.txt", "--head", "0.1"};
  CHECK(as_recorded(command, drawn, drawn) == command);
  CHECK(as_recorded(command, drawn, {"render", "--head", "0.1", "--text=Anna"}) ==
        Words{"render", "--head", "{}", "--text=Anna"});
  const Words of_each{"render", "-f", "{}.txt"};
  CHECK(as_recorded(of_each, {"render", "-f", "a.txt"}, {"render", "--text=Anna"}) == of_each);
  CHECK(as_recorded({"render", "--again", "{}"}, {"render", "--again", "a.png"}, {"mask", "full"}) ==
        Words{"render", "--again", "{}"});
}

TEST_CASE("every view of a head that the window wrote is drawn again to the pixel, with its edits and its words") {
  const auto folder = scratch_dir("recipe-views");
  Controller controller;
  Explorer& explorer = controller.explorer;
  explorer.run.open_model(source_dir() / "models/tiny-gpt2");
  explorer.editor.set_text("Anna sold the pies and she kept the milk for Anna");
  explorer.editor.set_edits({{{0, 1}, SetTemperature{2}}, {{1, 0}, Ablate{}}});
  explorer.editor.select({1, 2});
  controller.settle();
  REQUIRE(controller.results().run);
  explorer.editor.pin(7, 3);
  // In words, what is pinned is the word that the token is of.
  const TracedRun& run = *controller.results().run;
  REQUIRE(run.words.word_of(3) != 3);
  const ViewSource in_words{.trace = run.trace, .words = run.words, .document = explorer.state().document, .view = {}};
  const auto [joined, asked] = in_words.settled({});
  CHECK(joined->merged_tokens == static_cast<Index>(run.trace->tokens.size()));
  CHECK(asked.query == run.words.word_of(7));
  CHECK(asked.key == run.words.word_of(3));
  struct Case {
    HeadView view;
    TextUnit unit = TextUnit::tokens;
    FirstToken first = FirstToken::show;
    bool all_heads = false, for_print = true;
    Scale scale = Scale::linear;
    double dpi = 96;
  };
  const Case cases[] = {{HeadView::map},
                        {.view = HeadView::map, .unit = TextUnit::words, .first = FirstToken::renormalize},
                        {.view = HeadView::map, .for_print = false, .scale = Scale::log, .dpi = 150},
                        {.view = HeadView::map, .all_heads = true},
                        {.view = HeadView::steps, .all_heads = true},
                        {.view = HeadView::arcs, .first = FirstToken::hide},
                        {.view = HeadView::row, .unit = TextUnit::words},
                        {HeadView::steps},
                        {HeadView::qk},
                        {.view = HeadView::heads, .unit = TextUnit::words}};
  int number = 0;
  for (const Case& each : cases) {
    CAPTURE(number);
    View& view = explorer.editor.view();
    view.head_view = each.view, view.text_unit = each.unit, view.first_token = each.first, view.scale = each.scale;
    controller.settle();
    for (const char* ending : {".png", ".svg", ".pdf"}) {
      ExportOptions options{folder / (std::to_string(number) + ending), each.dpi, each.for_print, each.all_heads};
      PictureRecipe recipe;
      recipe.session = explorer.files.session();
      recipe.dpi = each.dpi, recipe.all_heads = each.all_heads, recipe.for_print = each.for_print;
      options.note.recipe = to_json(recipe);
      export_view(explorer.jobs, explorer.state(), controller.results(), options);
      controller.settle();
      const Finished again = run_cli({"render", "--again", options.file.string()});
      CAPTURE(controller.message());
      CAPTURE(again.err);
      CHECK(again.code == 0);
      CHECK(again.out == "the same as " + options.file.string() + "\n");
    }
    ++number;
  }
}

TEST_CASE("a picture opens as the session that it was made in; a command's as its model, text, edits and head") {
  const auto folder = scratch_dir("recipe-open");
  const std::string model = (source_dir() / "models/tiny-gpt2").string();
  const auto drawn = run_cli({"render", "-m", model, "-t", "Anna sold pies", "--head", "1.2", "--row", "2", "--arcs",
                              "--edit", "0.1: temperature 2", "-o", (folder / "a.svg").string()});
  CAPTURE(drawn.err);
  REQUIRE(drawn.code == 0);
  Controller controller;
  controller.explorer.files.open(folder / "a.svg");
  controller.settle();
  const AppState& state = controller.explorer.state();
  CHECK(state.document.text == "Anna sold pies");
  CHECK(state.document.selected == HeadId{1, 2});
  CHECK(state.document.query == 2);
  CHECK(state.document.edits == std::vector<Intervention>{{{0, 1}, SetTemperature{2}}});
  CHECK(state.view.head_view == HeadView::arcs);
  REQUIRE(controller.results().run);
  CHECK(controller.results().run->trace->model.name == "tiny-gpt2");

  // A film opens with what its first picture shows.
  for (const char* name : {"f.gif", "f.apng"}) {
    const auto film = run_cli({"animate", "-o", (folder / name).string(), "--over", "3,4", "--", "render", "-m", model,
                               "-t", "Anna sold milk", "--head", "0.2", "--temperature", "{}"});
    CAPTURE(film.err);
    REQUIRE(film.code == 0);
    bool plain = false;
    controller.explorer.files.open_picture_soon(folder / name, [&] { plain = true; });
    controller.settle();
    CHECK_FALSE(plain);
    CHECK(state.document.text == "Anna sold milk");
    CHECK(state.document.selected == HeadId{0, 2});
    REQUIRE(state.document.edits.size() == 1);
    CHECK(state.document.edits.front().action == EditAction(SetTemperature{3}));
    controller.explorer.files.open(folder / "a.svg");
    controller.settle();
  }

  // Not a picture of ours: broken, of another kind than its name says, or without a recipe.
  write_file_atomically(folder / "photo.png", "\xFF\xD8\xFF\xE0 a JPEG");
  write_file_atomically(folder / "cut.png", std::string("\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 16));
  for (const char* name : {"photo.png", "cut.png"}) {
    bool other = false;
    controller.explorer.files.open_picture_soon(folder / name, [&] { other = true; });
    controller.settle();
    CHECK(other);
  }
  bool plain = false;
  controller.explorer.files.open_picture_soon(source_dir() / "assets/readme/lesson.png", [&] { plain = true; });
  controller.settle();
  CHECK(plain);
  const auto bare = run_cli({"mechanism", "softmax", "--random", "6", "-o", (folder / "m.png").string()});
  REQUIRE(bare.code == 0);
  CHECK_THROWS_WITH_AS(controller.explorer.files.open(folder / "m.png"), doctest::Contains("mechanism"), Error);
  CHECK_THROWS_WITH_AS(controller.explorer.files.open(source_dir() / "assets/readme/lesson.png"),
                       doctest::Contains("no recipe"), Error);
}

}  // namespace headscope::picture_recipe_test
