// headscope --again FILE --out OUT tells that OUT cannot be written before it opens a model for it: here the model is
// not there either, and it is OUT that the error names.

#include <doctest/doctest.h>

#include "app/state/picture_recipe.h"
#include "core/base/file.h"
#include "tests/gui/programs.h"
#include "tests/support/paths.h"
#include "viz/export/recipe_note.h"

namespace headscope::again_out_test {

using testing::Display;
using testing::Ended;
using testing::run_program;
using testing::scratch_dir;
namespace fs = std::filesystem;

TEST_CASE("an OUT that cannot be written is told of before the page is opened, by both programs") {
  const fs::path folder = scratch_dir("again-out");
  PictureRecipe recipe;
  recipe.program = "0.1.0";
  recipe.session.emplace();
  recipe.session->document.model = folder / "no-model";
  recipe.session->document.text = "Anna sold pies";
  recipe.session->window.workspace = "Analyse";
  recipe.page = "Logit lens";
  recipe.shown = {"lens", 900, 700, 1};
  Scene scene;
  scene.recipe = to_json(recipe);
  const fs::path file = folder / "lens.csv";
  write_file_atomically(file, "1\n");
  write_csv_metadata(file, scene);
  fs::create_directory(folder / "taken.csv");
  for (const auto& [out, found] :
       {std::pair{folder / "missing" / "x.csv", "No such file or directory"}, {folder / "taken.csv", "a folder"}}) {
    CAPTURE(out.string());
    const std::string named = ": " + out.string() + ": expected ", what = std::string("found ") + found;
    for (const auto& [program, arguments] :
         {std::pair<std::string, std::string>{"window/headscope", "--again '" + file.string() + "' --out '"},
          {"headscope-cli", "render --again '" + file.string() + "' -o '"}}) {
      CAPTURE(program);
      const Ended ended = run_program(program, arguments + out.string() + "'", Display::none);
      CHECK(ended.code == 1);
      CHECK_MESSAGE(ended.said.find(named) != std::string::npos, ended.said);
      CHECK(ended.said.find(what) != std::string::npos);
    }
  }
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}) == 3);
  // One that can be written: the model is what is told.
  const Ended ended = run_program(
      "window/headscope", "--again '" + file.string() + "' --out '" + (folder / "x.csv").string() + "'", Display::none);
  CHECK(ended.code == 1);
  CHECK_MESSAGE(ended.said.find("no-model") != std::string::npos, ended.said);
}

}  // namespace headscope::again_out_test
