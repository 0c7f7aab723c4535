// Pictures of the window's pages drawn once more by the programs, without a display, and what refuses that.

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "app/all_workspaces.h"
#include "app/state/picture_recipe.h"
#include "app/workspaces/analyse/page.h"
#include "core/base/file.h"
#include "tests/gui/explore.h"
#include "tests/gui/programs.h"
#include "tests/support/paths.h"
#include "tests/support/small_recipe.h"
#include "viz/export/png.h"

namespace headscope::page_again_test {

using testing::Display;
using testing::Ended;
using testing::Explore;
using testing::run_program;
using testing::scratch_dir;
namespace fs = std::filesystem;

namespace {

/// headscope-cli, or with "window/headscope" the window's program, where there is no display.
Ended run(const std::string& program, const std::string& arguments) {
  return run_program(program, arguments, Display::none);
}

/// All of the window, with a person in front of it who exports pictures.
struct Exporting {
  fs::path folder;
  App app;
  AllWorkspaces workspaces{app};
  headscope::testing::Driver driver{app.window(), [this] { app.frame(); }};

  Exporting(const std::string& name, const char* example, int width = 1500, int height = 940)
      : folder(scratch_dir("again-" + name)), app(options(example, width, height)) {
    app.settings().save_folder = folder;
    REQUIRE(settle());
  }
  static AppOptions options(const char* example, int width, int height) {
    AppOptions out = Explore::options(width, height);
    out.example = example;
    return out;
  }
  bool settle() {
    int quiet = 0;
    const auto whole = [&] {
      return app.settled() && (app.explorer().results().run || app.explorer().state().document.text.empty());
    };
    return driver.until([&] { return (quiet = whole() ? quiet + 1 : 0) > 10; }, 60'000);
  }
  void show(const char* workspace, const std::string& page = "") {
    const auto found = std::ranges::find(workspace_list, std::string_view(workspace), &WorkspaceName::id);
    REQUIRE(found != std::end(workspace_list));
    app.requests().workspace = static_cast<int>(found - std::begin(workspace_list));
    if (!page.empty()) app.settings().pages[workspace] = page;
    REQUIRE(settle());
  }
  /// A page's controls, as JSON.
  void put(const char* workspace, const std::string& controls) {
    app.requests().controls = std::map<std::string, std::string>{{workspace, controls}};
    REQUIRE(settle());
  }
  /// The file of a picture of this page, "" = the largest; none where nothing is drawn.
  std::optional<fs::path> exported(const std::string& name, const char* format, const std::string& id = "",
                                   const char* ground = nullptr) {
    app.explorer().jobs.dismiss();
    driver.key(ImGuiKey_E, ImGuiMod_Ctrl);
    driver.frames(3);
    if (app.window().pictures().all.empty()) {
      driver.key(ImGuiKey_Escape);
      return std::nullopt;
    }
    driver.click(format);
    if (ground) driver.click(ground);
    if (!id.empty()) {
      driver.click("picture to export");
      driver.click("export " + id);
    }
    driver.click("##file name");
    driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
    driver.type(name);
    driver.click("Export");
    REQUIRE(driver.until([&] { return app.explorer().jobs.message().has_value(); }));
    const std::string said = app.explorer().jobs.message()->text;
    CAPTURE(said);
    REQUIRE(said.starts_with("Written: "));
    app.explorer().jobs.dismiss();
    return fs::path(said.substr(9, said.find("  ") - 9));
  }
};

/// Both programs' way: the same picture, to the byte where the file is no picture but its drawing too.
void drawn_again(const fs::path& file) {
  CAPTURE(file.string());
  const Ended seen = run("headscope-cli", "render --again '" + file.string() + "'");
  CHECK_MESSAGE(seen.code == 0, seen.said);
  CHECK(seen.said == "the same as " + file.string() + "\n");
}

void drawn_again_to_the_byte(const fs::path& file) {
  CAPTURE(file.string());
  const fs::path anew = file.parent_path() / ("anew-" + file.filename().string());
  const Ended written = run("window/headscope", "--again '" + file.string() + "' --out '" + anew.string() + "'");
  CHECK_MESSAGE(written.code == 0, written.said);
  CHECK(written.said == "");
  CHECK(read_file(anew) == read_file(file));
  CHECK(to_json(read_picture_recipe(anew)) == to_json(read_picture_recipe(file)));  // and can be drawn from in turn
}

}  // namespace

TEST_CASE("the picture of every page of Analyse is drawn again to the pixel, without a display") {
  HEADSCOPE_NEEDS_DISPLAY();
  std::vector<fs::path> files;
  std::set<std::string> without;
  {
    Exporting e("analyse", "induction-2l");
    e.app.explorer().editor.select({1, 2});
    e.app.explorer().editor.pin(9, 4);
    for (const PageEntry& page : page_registry()) {
      CAPTURE(page.info.id);
      e.show("Analyse", page.info.id);
      if (const auto file = e.exported(page.info.id, "SVG"))
        files.push_back(*file);
      else
        without.insert(page.info.id);
    }
  }
  for (const std::string& id : without) MESSAGE("without " << id);
  for (const fs::path& file : files) drawn_again(file);
}

TEST_CASE("so is what other models have pages for") {
  HEADSCOPE_NEEDS_DISPLAY();
  std::vector<fs::path> files;
  for (const auto& [model, page] : {std::pair{"tiny-translate", "alignment"},
                                    {"tiny-vit", "patches"},
                                    {"tiny-mamba", "state"},
                                    {"tiny-gpt2", "ffn"}}) {
    CAPTURE(page);
    Exporting e(page, model);
    e.show("Analyse", page);
    const auto file = e.exported(page, "PNG");
    REQUIRE(file);
    files.push_back(*file);
  }
  for (const fs::path& file : files) drawn_again(file);
}

TEST_CASE("pictures, numbers and PDFs of other pages and workspaces are drawn again to the byte") {
  HEADSCOPE_NEEDS_DISPLAY();
  std::vector<fs::path> files;
  const auto keep = [&](const std::optional<fs::path>& file) {
    REQUIRE(file);
    files.push_back(*file);
  };
  {
    Exporting e("others", "tiny-gpt2", 1340, 800);
    e.app.explorer().editor.view().theme = "light";
    e.put("Analyse", R"({"ablate": {"ablation": 3, "ablation_seed": 4, "measure": 1},
                         "lens": {"color": 1, "follow": 2, "token": {"text": " milk"}},
                         "attribution": {"token": {"text": " milk"}, "against": {"text": " hay"}}})");
    e.show("Analyse", "ablate");
    keep(e.exported("ablation", "PNG"));
    keep(e.exported("ablation-list", "CSV", "heads by effect"));
    e.show("Analyse", "lens");
    keep(e.exported("way", "PDF", "way", "As on screen"));
    e.show("Analyse", "attribution");
    keep(e.exported("attribution", "SVG"));

    e.put("Compare", R"({"with": 1, "text": "In the village of Zoziford there lived Anna and her cousin Tom."})");
    e.show("Compare");
    keep(e.exported("pair", "PNG", "pair"));
    keep(e.exported("losses", "CSV", "compare losses"));

    e.put("Generate", R"({"temperature": 0.8, "seed": 5, "beams": 3, "beam_tokens": 4})");
    e.show("Generate", "tape");
    for (int i = 0; i < 3; ++i) {
      e.workspaces.generation.step();
      REQUIRE(e.settle());
    }
    keep(e.exported("tape", "SVG"));
    e.show("Generate", "beams");
    keep(e.exported("beams", "PNG", "beams"));

    e.show("Corpus");
    e.workspaces.corpus_controller.draft().count = 5;
    e.workspaces.corpus_controller.start();
    REQUIRE(e.settle());
    keep(e.exported("corpus", "SVG"));
    keep(e.exported("corpus-numbers", "CSV", "corpus table"));
  }
  for (const fs::path& file : files) drawn_again_to_the_byte(file);
}

TEST_CASE("what took a press of Start is started again, also where the right column was closed or one presented") {
  HEADSCOPE_NEEDS_DISPLAY();
  std::vector<fs::path> files;
  const auto keep = [&](const std::optional<fs::path>& file) {
    REQUIRE(file);
    files.push_back(*file);
    CHECK(read_picture_recipe(*file).shown->started);
    CHECK(read_picture_recipe(*file).shown->passing == "");
  };
  fs::path passing;
  {
    Exporting e("started", "everyday-gpt2", 1500, 940);
    View& view = e.app.explorer().editor.view();
    const auto right_column = [&](bool open) {
      view.right_open = open;
      REQUIRE(e.settle());
    };
    const auto start = [&] {
      e.driver.click("Start");
      REQUIRE(e.driver.until([&] { return e.driver.shown("Start again"); }, 60'000));
      REQUIRE(e.settle());
    };
    e.put("Analyse", R"({"expert-comparison": {"steps": 2, "price": 0.2}})");
    e.show("Analyse", "expert-comparison");
    start();
    keep(e.exported("rewards", "PNG", "expert rewards"));
    right_column(false);
    keep(e.exported("rewards-closed", "SVG", "expert rewards"));
    e.put("Analyse", R"({"expert-comparison": {"steps": 3, "price": 0.2}})");
    passing = *e.exported("stale", "SVG", "expert rewards");
    e.put("Analyse", R"({"expert-comparison": {"steps": 2, "price": 0.2, "what": 1}})");
    right_column(true);
    start();
    keep(e.exported("adapters", "PNG"));

    e.put("Analyse", R"({"self-adaptation": {"steps": 2}})");
    e.show("Analyse", "self-adaptation");
    start();
    keep(e.exported("two-passes", "PNG", "expert losses"));
    const std::string text = e.app.explorer().state().document.text;
    e.app.explorer().editor.set_text("");  // experts need none
    REQUIRE(e.settle());
    keep(e.exported("without-text", "SVG", "expert losses"));
    e.app.explorer().editor.set_text(text);
    REQUIRE(e.settle());

    e.show("Analyse", "temperature");
    e.app.requests().presenting = true;
    REQUIRE(e.settle());
    keep(e.exported("presented", "SVG"));
    e.app.requests().presenting = false;

    e.app.explorer().editor.view().right_open = false;
    e.show("Analyse", "ablate");
    REQUIRE(e.driver.until([&] { return e.driver.shown("effects"); }, 60'000));
    REQUIRE(e.settle());
    keep(e.exported("ablation", "PNG"));
  }
  for (const fs::path& file : files) drawn_again_to_the_byte(file);

  // A film through the same page, which the sweep is made for once.
  PictureRecipe film = read_picture_recipe(files.back());
  film.film = RecipeFilm{"/session/window/controls/Analyse/ablate/measure", {"0", "1", "2"}, 0.5, false};
  const fs::path plan = passing.parent_path() / "plan.apng", drawn = passing.parent_path() / "film.apng";
  write_file_atomically(plan, encode_png({1, 1, {0, 0, 0, 255}}, 96, FileNote{"", "", to_json(film)}));
  CHECK(run("window/headscope", "--again '" + plan.string() + "' --out '" + drawn.string() + "'").said == "");
  CHECK(png_chunks(read_file(drawn), "acTL").substr(0, 4) == std::string("\0\0\0\3", 4));
  drawn_again(drawn);

  const Ended ended = run("headscope-cli", "render --again '" + passing.string() + "'");
  CHECK(ended.code == 1);
  CHECK(ended.said.find("for an earlier text or setting") != std::string::npos);
}

TEST_CASE("what no session holds is refused by name, and a stranger's recipe reads no texts and can be stopped") {
  HEADSCOPE_NEEDS_DISPLAY();
  fs::path training, corpus, head;
  {
    Exporting e("refused", "induction-2l", 1340, 800);
    head = *e.exported("head", "SVG");
    e.show("Corpus");
    e.workspaces.corpus_controller.draft().count = 3;
    e.workspaces.corpus_controller.start();
    REQUIRE(e.settle());
    corpus = *e.exported("corpus", "SVG");
    e.workspaces.training.draft() = testing::small_recipe();
    e.workspaces.training.start();
    e.workspaces.training.pause_at(3);
    REQUIRE(e.driver.until([&] { return e.workspaces.training.phase() == TrainingController::Phase::paused; }, 20'000));
    e.show("Train");
    training = *e.exported("training", "SVG", "training loss");
  }
  {
    Exporting e("zoomed", "tiny-gpt2", 1340, 800);
    e.driver.hover("head/map");
    e.driver.wheel(4);
    REQUIRE(e.settle());
    const auto zoomed = e.exported("zoomed", "SVG", "head");
    REQUIRE(zoomed);
    const Ended ended = run("headscope-cli", "render --again '" + zoomed->string() + "'");
    CHECK(ended.code == 1);
    CHECK(ended.said.find("which showed the part of a map that the wheel had chosen") != std::string::npos);
    const auto depth = e.exported("depth", "SVG", "depth");  // of the same page, and not zoomed
    REQUIRE(depth);
    drawn_again(*depth);
  }
  const fs::path out = training.parent_path() / "out.svg";
  const auto again = [&](const fs::path& file, const std::string& before = "") {
    return run("headscope-cli", "render --again '" + file.string() + "' -o '" + out.string() + "'" + before);
  };
  Ended ended = again(training);
  CHECK(ended.code == 1);
  CHECK(ended.said.find("which showed a training") != std::string::npos);
  CHECK(run("window/headscope", "--again '" + head.string() + "' --out x.svg").said.find("headscope-cli render") !=
        std::string::npos);
  CHECK(run("window/headscope", "--again '" + corpus.string() + "'").code == 2);  // no --out

  // Somebody wrote files into it: they are not read.
  const std::string drawn = read_file(corpus);
  const auto changed = [&](std::string from, std::string to) {
    for (std::string* each : {&from, &to})  // as XML has it
      for (std::size_t at = 0; (at = each->find('"', at)) != std::string::npos;) each->replace(at, 1, "&quot;");
    std::string text = drawn;
    const std::size_t at = text.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, text.substr(text.find("headscope-recipe"), 3000));
    text.replace(at, from.size(), to);
    const fs::path file = corpus.parent_path() / "changed.svg";
    write_file_atomically(file, text);
    return file;
  };
  write_file_atomically(corpus.parent_path() / "secret.txt", "a b a b a b a b");
  ended = again(changed("\"path\":\"\"", "\"path\":\"" + (corpus.parent_path() / "secret.txt").string() + "\""));
  CHECK(ended.code == 0);  // of no use while texts are drawn
  ended = again(changed("\"stories\":true", "\"stories\":false"));
  CHECK(ended.code == 1);
  CHECK(ended.said.find("a page that draws none") != std::string::npos);

  // Stopped as Ctrl-C does it: this process alone is told.
  fs::remove(out);
  const fs::path long_one = changed("\"count\":3", "\"count\":500000");
  const fs::path cli = fs::read_symlink("/proc/self/exe").parent_path() / "../../app/headscope-cli";
  const int status = std::system(("timeout --foreground -s INT 4 '" + cli.string() + "' render --again '" +
                                  long_one.string() + "' -o '" + out.string() + "' 2> /dev/null; test $? = 124")
                                     .c_str());
  CHECK(WEXITSTATUS(status) == 0);
  CHECK_FALSE(fs::exists(out));
}

}  // namespace headscope::page_again_test
