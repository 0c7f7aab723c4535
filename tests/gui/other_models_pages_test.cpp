// Pages of Analyse on models that are no decoders: right numbers, or why there are none, said in the page.

#include <doctest/doctest.h>

#include "app/all_workspaces.h"
#include "tests/gui/analyse_page.h"
#include "tests/support/paths.h"

namespace headscope::other_models_pages_test {

using testing::AnalysePage;
using testing::Explore;
using testing::reference;

TEST_CASE("rollout, flow and attribution of a picture reach patches behind CLS") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage a("tiny-vit");
  a.open("attention rollout", "rollout", "rollout/matrix");
  CHECK(a.state().document.query.value_or(0) == 0);
  const auto patches = [&] {
    int shown = 0;
    for (const Token& token : a.results().run->trace->tokens) {
      const auto at = static_cast<int>(&token - a.results().run->trace->tokens.data());
      shown += at > 0 && a.driver.shown(fmt::format("{} {}", token.label, at));
    }
    return shown;
  };
  CHECK(patches() >= 8);
  a.open("direct logit attribution", "attribution", "sources/matrix");
}

TEST_CASE("a picture's file without classes is told of in the page, and closes nothing") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1280, 720);
  options.model = reference("vision/dinov2");
  options.image = reference("vision/picture.png");
  AnalysePage a(options);
  for (const char* page : {"direct logit attribution", "logit lens", "gradients"}) {
    CAPTURE(page);
    a.open(page);
    CHECK(a.driver.shown("Nothing to read here"));
    CHECK_FALSE(a.app.explorer().jobs.message());  // said in the page
  }
}

TEST_CASE("where nothing has a loss, pages tell how far the answer moves, or why there is nothing") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage a("tiny-bert");  // its example is masked by hand: nobody knows what stood there
  a.open("few bits and outliers", "few-bits", "KL of the answer");
  CHECK_FALSE(a.driver.shown("All layers"));
  CHECK(a.driver.shown("bits/line.per row"));
  a.open("shared keys and values", "sharing", "Per token");
  CHECK_FALSE(a.driver.shown("Loss on this text"));
  a.open("loss per token", "loss", "Nothing to add up");
  a.open("head ablation", "ablate", "effects/matrix");
  CHECK(a.light("Layer 1 Head 1") != a.light("Layer 0 Head 2"));  // of no value all would look alike
  a.open("activation patching", "patch", "patching/matrix");
  a.open("two passes", "self-adaptation", "This model learns no experts");
  CHECK_FALSE(a.driver.shown("Start"));
  a.open("experts by reward", "expert-comparison", "This model learns no experts");
  for (const char* page : {"ov and qk circuits", "composition of heads", "direct logit attribution"}) {
    CAPTURE(page);
    a.open(page);
    CHECK(a.driver.shown("Nothing to read here"));
  }
}

TEST_CASE("weights that came without their model are told of by pages that run one") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1280, 720);
  options.model = reference("npz/attention.npz");
  AnalysePage a(options);
  for (const char* page : {"head ablation", "singular values", "what is here", "temperature sweep", "masks"}) {
    CAPTURE(page);
    a.open(page);
    CHECK(a.driver.shown("This page reads a model"));
    CHECK_FALSE(a.driver.shown("There is no text yet"));
  }
}

TEST_CASE("two models of which one cannot read the other's text are told of, and positions of what has none") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const bool capture : {false, true}) {
    CAPTURE(capture);
    AppOptions options = Explore::options(1280, 720);
    options.model = capture ? reference("npz/attention.npz") : testing::source_dir() / "models/tiny-translate";
    options.workspace = capture ? "positions" : "compare";
    if (!capture) options.with_model = (testing::source_dir() / "models/tiny-gpt2").string();
    App app(options);
    AllWorkspaces workspaces{app};
    workspaces.begin_with(options);
    testing::Driver driver{app.window(), [&app] { app.frame(); }};
    int quiet = 0;
    REQUIRE(driver.until([&] { return (quiet = app.settled() ? quiet + 1 : 0) > 8; }, 6000));
    CHECK(driver.shown(capture ? "This page reads a model" : "One of the two does not run"));
  }
}

TEST_CASE("mechanisms have no vectors of a capture; those made at random work beside it") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1280, 720);
  options.model = reference("npz/attention.npz");
  options.workspace = "mechanisms";
  App app(options);
  AllWorkspaces workspaces{app};
  testing::Driver driver{app.window(), [&app] { app.frame(); }};
  const auto settle = [&] {
    int quiet = 0;
    return driver.until([&] { return (quiet = app.settled() ? quiet + 1 : 0) > 8; }, 6000);
  };
  REQUIRE(settle());
  CHECK(driver.shown("This page reads a model"));
  driver.click("Random");
  REQUIRE(settle());
  CHECK_FALSE(driver.shown("This page reads a model"));
  CHECK(workspaces.mechanisms.controller().page());
}

TEST_CASE("nothing stands before a session that the program was started with") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1280, 720);
  options.session = testing::source_dir() / "assets/examples/what-if.json";
  AnalysePage a(options);
  CHECK_FALSE(a.app.explorer().editor.history().can_undo());
  a.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(a.settle());
  CHECK(a.state().document.model == testing::source_dir() / "models/tiny-gpt2");
}

}  // namespace headscope::other_models_pages_test
