// Pages that have nothing to show say so in one sentence, and show no control that would change nothing; where a run is
// missing the window says what is missing; narrow columns cut no choice.

#include <doctest/doctest.h>

#include "app/all_workspaces.h"
#include "core/metrics/rollout.h"
#include "tests/gui/analyse_page.h"
#include "tests/support/paths.h"
#include "tests/support/small_recipe.h"

namespace headscope::dead_choices_test {

using testing::AnalysePage;
using testing::Driver;
using testing::Explore;
using testing::reference;

namespace {
/// The whole window.
struct Whole {
  App app;
  AllWorkspaces workspaces{app};
  Driver driver{app.window(), [this] { app.frame(); }};
  explicit Whole(const AppOptions& options) : app(options) {
    workspaces.begin_with(options);
    settle();
  }
  ~Whole() { use_words({}); }
  void settle() {
    int quiet = 0;
    REQUIRE(driver.until([&] { return (quiet = app.settled() ? quiet + 1 : 0) > 8; }, 20'000));
  }
};
}  // namespace

TEST_CASE(
    "pages about experts, a state and patches show no choices on a model without them, also after one with them") {
  HEADSCOPE_NEEDS_DISPLAY();
  const auto bare = [](AnalysePage& a) {
    a.open("Experts", "experts", "This model has no experts");
    for (const char* choice : {"Tokens of a layer", "All layers", "Capacity factor", "Layer", "Position"})
      CHECK_FALSE_MESSAGE(a.driver.shown(choice), choice);
    a.open("state of a state space", "state", "This model has no state");
    for (const char* choice : {"All layers", "Lanes of a layer", "step", "Layer", "Position"})
      CHECK_FALSE_MESSAGE(a.driver.shown(choice), choice);
    a.open("patches and positions", "patches", "This model reads no pictures");
    for (const char* choice : {"Patches", "Grid of positions", "Ask a word", "Position"})
      CHECK_FALSE_MESSAGE(a.driver.shown(choice), choice);
  };
  AnalysePage a("tiny-mixtral", 1280, 720);
  a.open("Experts", "experts", "Tokens of a layer");
  CHECK(a.driver.shown("Layer"));
  a.app.explorer().run.open_model(testing::source_dir() / "models/tiny-bert");
  REQUIRE(a.settle());
  bare(a);
  AppOptions capture = Explore::options(1280, 720);
  capture.model = reference("npz/attention.npz");
  AnalysePage b(capture);
  for (const char* page : {"Experts", "state of a state space", "patches and positions"}) {
    b.open(page);
    CHECK(b.driver.shown("This page reads a model"));
    for (const char* choice : {"Tokens of a layer", "All layers", "Lanes of a layer", "Patches", "Ask a word"})
      CHECK_FALSE_MESSAGE(b.driver.shown(choice), choice);
  }
}

TEST_CASE("alignment, which reads cross-attention alone, offers no stack; pages that ask the decoder do") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage a("tiny-translate", 1280, 720);
  a.open("activation patching", "patch", "Encoder");
  a.open("alignment error rate", "alignment", "the strongest");
  CHECK_FALSE(a.driver.shown("Encoder"));
  CHECK_FALSE(a.driver.shown("Cross"));
}

TEST_CASE("rollout reads the maps of a capture, of which no model is needed") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1280, 720);
  options.model = reference("npz/attention.npz");
  AnalysePage a(options);
  a.open("attention rollout", "rollout", "rollout/matrix");
  const Trace& trace = *a.results().run->trace;
  const Tensor expected = attention_rollout(mixing_matrices(trace, 0.5));
  REQUIRE(expected.dim(0) == 4);
  const Item matrix = a.driver.item("rollout/matrix");
  // The last row's first cell.
  a.driver.move_to(
      {matrix.min.x + (matrix.max.x - matrix.min.x) / 8, matrix.max.y - (matrix.max.y - matrix.min.y) / 8});
  REQUIRE(a.driver.until([&] { return a.driver.told(fmt::format("rollout {:.5f}", expected.at(3, 0))); }, 200));
  CHECK(a.driver.shown("flow/matrix"));
  CHECK(a.driver.shown("Share"));
}

TEST_CASE("of an encoder with a masked token the patching page has a pair that is answered both ways") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage a("tiny-bert", 1280, 720);
  a.open("activation patching", "patch", "patching/matrix");
  a.driver.click("Example prompts");
  a.driver.frames(3);
  const auto items = a.app.window().items().items();
  CHECK(std::ranges::none_of(items, [](const Item& item) { return item.label == "Who gave the drink"; }));
  a.driver.key(ImGuiKey_Escape);
}

TEST_CASE("a text that is too long is told of where its pictures would stand, in every workspace") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1280, 720);
  options.text = std::string(2000, 'a');
  Whole w(options);
  REQUIRE(w.app.explorer().results().too_long);
  for (const char* workspace : {"Explore", "Analyse", "Positions", "Generate"}) {
    CAPTURE(workspace);
    w.driver.click(workspace);
    w.settle();
    CHECK(w.driver.shown("The text is too long for this model"));
  }
  w.app.explorer().editor.set_text("");
  w.driver.click("Explore");
  w.settle();
  CHECK(w.driver.shown("There is no text yet"));
}

TEST_CASE("why two runs cannot be compared stands in the middle, and not in the corner besides") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1280, 720);
  options.model = testing::source_dir() / "models/tiny-translate";
  options.workspace = "compare";
  options.with_model = (testing::source_dir() / "models/tiny-gpt2").string();
  Whole w(options);
  w.driver.frames(4);
  CHECK(w.driver.shown("One of the two does not run"));
  CHECK_FALSE(w.app.explorer().jobs.message());
}

TEST_CASE("in a narrow window no choice and no number is cut, in German either") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(900, 600);
  options.language = "de";
  options.workspace = "train";
  Whole w(options);
  REQUIRE(language_of_words() == "de");
  w.workspaces.training.draft() = testing::small_recipe();
  w.workspaces.training.start();
  w.workspaces.training.pause_at(2);
  REQUIRE(w.driver.until(
      [&] { return w.workspaces.training.moment() && w.workspaces.training.moment()->view->step == 2; }, 20'000));
  w.settle();
  const float left_edge = w.driver.item("training loss").min.x - 8, edge = 900 - 8;
  for (const char* choice :
       {"One model", "Copying", "Head count", "One vector", "Recipe", "Start again", "Resume", "Step"}) {
    CAPTURE(choice);
    CHECK(w.driver.item(choice).max.x <= left_edge);
  }
  for (const char* choice : {"Entropy", "Sink", "Save", "Open in Explore", "Fork from here"}) {
    CAPTURE(choice);
    CHECK(w.driver.item(choice).max.x <= edge);
  }
  // Words that have no room beside one another stand in rows, and stay as large as they are read.
  CHECK(w.driver.item("Copying").min.y >= w.driver.item("One model").max.y);
  w.driver.click("Explore");
  w.settle();
  CHECK(w.driver.item("Filter heads").max.x <= left_edge);
  w.driver.click("Generate");
  w.app.settings().pages["Generate"] = "beams";
  w.settle();
  CHECK(w.driver.item("Rewrite from here").max.x <= left_edge);
  CHECK(w.driver.item("Full speed").max.x <= left_edge);
  // A finished text: its score beside its rank, what is said of it below, then the text.
  const Item first = w.driver.item("beam 1");
  CHECK(first.max.x <= edge);
  CHECK(first.max.y - first.min.y >= 16 * 2 + 24);
}

}  // namespace headscope::dead_choices_test
