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
    out.example = "everyday-gpt2";
    out.first_steps = true;
    return out;
  }
  std::string answer() { return results().model.tokenizer->token(most_probable(*results().run->trace).id).label; }
};
}  // namespace

TEST_CASE("a newcomer meets a short text, a sentence about it, and one click shows that it is true") {
  HEADSCOPE_NEEDS_DISPLAY();
  Newcomer n;
  const auto whole = n.results().run->trace;
  CHECK(whole->tokens.size() < 30);
  // Which head the answer needs, by running the model without each: the one that costs it most.
  Backend backend(1);
  const LoadedModel model = n.results().model;
  const std::int32_t answer = most_probable(*whole).id;
  const auto without = [&](HeadId head) {
    RunRequest edited = n.results().run->request;
    edited.edits = {{{head.layer, head.head}, Ablate{Ablate::By::mean}}};
    return run(model, edited, Ctx{backend});
  };
  const auto loss = [&](const Trace& trace) {
    return next_token_loss(trace.logits.select(0, trace.logits.dim(0) - 1), answer);
  };
  HeadId needed;
  std::shared_ptr<const Trace> worst;
  for (int layer = 0; layer < whole->model.dims.layers; ++layer)
    for (int head = 0; head < whole->model.dims.heads; ++head)
      if (const auto after = without({layer, head}); !worst || loss(*after) > loss(*worst))
        worst = after, needed = {layer, head};
  const std::int32_t other = most_probable(*worst).id;
  REQUIRE(other != answer);  // a text in which it can be seen

  const std::string look = "Look at head " + to_string(needed);
  REQUIRE(n.driver.until([&] { return n.driver.shown("Take it out"); }, 6000));
  CHECK(n.driver.shown(look));
  n.driver.frames(2);
  CHECK(n.state().document.selected == needed);  // the sentence's own, while nobody has chosen another
  CHECK_FALSE(n.state().document.query.has_value());
  CHECK(n.app.explorer().files.unsaved().empty());
  const HeadId elsewhere{needed.layer, (needed.head + 1) % whole->model.dims.heads};
  n.app.explorer().editor.select(elsewhere);
  REQUIRE(n.settle());
  CHECK(n.state().document.selected == elsewhere);  // which then stays
  n.driver.click(look);
  REQUIRE(n.settle());
  CHECK(n.state().document.selected == needed);
  CHECK(n.state().document.query == static_cast<Index>(whole->tokens.size()) - 1);

  n.driver.click("Take it out");
  REQUIRE(n.settle());
  REQUIRE(n.state().document.edits.size() == 1);
  CHECK(n.state().document.edits[0] == Intervention{{needed.layer, needed.head}, Ablate{Ablate::By::mean}});
  CHECK(most_probable(*n.results().run->trace).id == other);
  CHECK(n.driver.shown(look));  // still of the model as it is
  n.driver.click("Put it back");
  REQUIRE(n.settle());
  CHECK(n.state().document.edits.empty());
  CHECK(most_probable(*n.results().run->trace).id == answer);
}

TEST_CASE("a lesson takes the place of the first steps, and gives it back") {
  HEADSCOPE_NEEDS_DISPLAY();
  Newcomer n;
  LessonController& lessons = n.app.explorer().lessons;
  REQUIRE(n.driver.until([&] { return n.driver.shown("Take a lesson"); }, 6000));
  n.driver.click("Take a lesson");
  n.driver.frames(4);
  REQUIRE(n.driver.until([&] { return !lessons.list().empty() && n.driver.shown(lessons.list().front()->title); }));
  n.driver.click(lessons.list().front()->title);
  REQUIRE(n.driver.until([&] { return lessons.told() != nullptr; }, 6000));
  n.driver.frames(3);
  CHECK_FALSE(n.driver.shown("Take a lesson"));
  lessons.close();
  CHECK(n.driver.until([&] { return n.driver.shown("Take a lesson"); }, 6000));
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
