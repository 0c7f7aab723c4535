// What somebody meets who opens the window for the first time: a sentence that was tested, things to try, one click
// each.

#include <doctest/doctest.h>

#include "core/edits/ablate_edit.h"
#include "core/metrics/next_token.h"
#include "tests/gui/explore.h"

namespace headscope::first_steps_test {

namespace {
struct Newcomer : testing::Explore {
  AnalyseWorkspace analyse{app.explorer().jobs, app.explorer().run};
  Newcomer() : Explore(first_time()) {
    app.add(analyse);
    driver.frames(2);
  }
  static AppOptions first_time() {
    AppOptions out = options(1280, 720);
    out.example = "tiny-gpt2";
    out.first_steps = true;
    return out;
  }
  std::string answer() { return results().model.tokenizer->token(most_probable(*results().run->trace).id).label; }
};
}  // namespace

TEST_CASE("a newcomer meets a short text, a sentence about it, and one click shows that it is true") {
  HEADSCOPE_NEEDS_DISPLAY();
  Newcomer n;
  CHECK(n.results().run->trace->tokens.size() < 30);
  REQUIRE(n.driver.until([&] { return n.driver.shown("Take it out"); }, 6000));
  CHECK(n.driver.shown("Look at head 1.2"));
  CHECK(n.answer() == "␣Sophie");

  n.driver.click("Look at head 1.2");
  REQUIRE(n.settle());
  CHECK(n.state().document.selected == HeadId{1, 2});
  CHECK(n.state().document.query == 25);

  n.driver.click("Take it out");
  REQUIRE(n.settle());
  REQUIRE(n.state().document.edits.size() == 1);
  CHECK(n.state().document.edits[0] == Intervention{{1, 2}, Ablate{Ablate::By::mean}});
  CHECK(n.answer() == "␣Peter");
  CHECK(n.driver.shown("Look at head 1.2"));  // still of the model as it is
  n.driver.click("Put it back");
  REQUIRE(n.settle());
  CHECK(n.state().document.edits.empty());
  CHECK(n.answer() == "␣Sophie");
}

TEST_CASE("first steps lead to the findings, are put away with their cross and brought back by the palette") {
  HEADSCOPE_NEEDS_DISPLAY();
  Newcomer n;
  REQUIRE(n.driver.until([&] { return n.driver.shown("Five findings"); }, 6000));
  n.driver.click("Five findings");
  n.driver.frames(3);
  CHECK(n.app.requests().workspace == 1);
  CHECK(n.app.settings().pages["Analyse"] == "scan");
  n.driver.click("Explore");
  n.driver.frames(3);
  n.driver.click("×");
  n.driver.frames(3);
  CHECK_FALSE(n.app.settings().first_steps);
  CHECK_FALSE(n.driver.shown("Five findings"));
  n.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  n.driver.frames(3);
  n.driver.type("first steps");
  n.driver.frames(2);
  n.driver.key(ImGuiKey_Enter);
  n.driver.frames(4);
  CHECK(n.app.settings().first_steps);
  CHECK(n.driver.shown("Five findings"));
}

TEST_CASE("who has been here before is left alone: a file of settings without the key means no first steps") {
  Settings settings;
  CHECK(settings.first_steps);
  CHECK(settings_from_json(to_json(settings), "x").first_steps);
  settings.first_steps = false;
  CHECK_FALSE(settings_from_json(to_json(settings), "x").first_steps);
  CHECK_FALSE(settings_from_json("{\"type\": \"headscope settings\", \"version\": 1}", "x").first_steps);
}

}  // namespace headscope::first_steps_test
