// Answers about a pinned word, above the head.

#include <doctest/doctest.h>

#include "core/analysis/word_answer.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"

namespace headscope::word_line_test {

namespace {
struct Asker : testing::Explore {
  explicit Asker(const AppOptions& wanted = seated()) : Explore(wanted) { app.settings().first_steps = false; }
  static AppOptions seated() {
    AppOptions out = options(1280, 720);
    out.example = "tiny-gpt2";
    out.first_steps = true;  // somebody sits in front of it
    return out;
  }
  WordAnswer expected(Index row) {
    Backend backend(1);
    const Ctx ctx{backend};
    WordSweep sweep(load_model(state().document.model, backend), {.run = results().run->request, .row = row});
    while (!sweep.finished()) sweep.step(ctx);
    return *sweep.result();
  }
};
}  // namespace

TEST_CASE("a pinned word is told about; its head is looked at, taken out and put back; the cross puts it away") {
  HEADSCOPE_NEEDS_DISPLAY();
  Asker a;
  CHECK_FALSE(a.driver.shown("Unpin"));
  const Index row = static_cast<Index>(a.results().run->trace->tokens.size()) - 2;
  const WordAnswer told = a.expected(row);
  REQUIRE_FALSE(told.looks.empty());
  const WordLook& look = told.looks.front();
  const std::string button = "Look at head " + to_string(look.head);
  a.app.explorer().editor.pin(row);
  REQUIRE(a.driver.until([&] { return a.driver.shown(button); }, 6000));
  a.driver.click(button);
  REQUIRE(a.settle());
  CHECK(a.state().document.selected == look.head);
  CHECK(a.state().document.query == row);
  CHECK(a.state().document.key == look.key);

  const float map = a.driver.item("head/map").min.y;
  a.driver.click("Hide it from this word");
  REQUIRE(a.settle());
  REQUIRE(a.state().document.edits.size() == 1);
  CHECK(a.state().document.edits[0] == without_look(told.request, look));
  CHECK(a.driver.shown(button));  // the sentence is still of the model as it is
  CHECK(a.driver.item("head/map").min.y == map);
  a.driver.click("Show it again");
  CHECK(a.state().document.edits.empty());

  a.driver.click("This word in all heads");
  CHECK(a.state().view.head_view == HeadView::heads);
  a.driver.click("Back to one head");
  CHECK(a.state().view.head_view == HeadView::map);
  REQUIRE(a.settle());
  a.driver.click("Unpin");
  CHECK(a.driver.item("head/map").min.y == map);  // nothing moves under the hand
  CHECK_FALSE(a.state().document.query);
  CHECK_FALSE(a.driver.shown("Unpin"));
  a.app.explorer().editor.pin(row);
  REQUIRE(a.driver.until([&] { return a.driver.shown("Unpin"); }, 6000));
  REQUIRE(a.settle());
  a.driver.click("×");
  CHECK_FALSE(a.driver.shown("Unpin"));
  CHECK_FALSE(a.app.settings().word_answers);
}

TEST_CASE("of an encoder-decoder a look is hidden once and shown again") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Asker::seated();
  options.model = testing::source_dir() / "models/tiny-translate";
  options.source = "the kind mice saw this white king";
  options.text = "kar lipar dular so";
  Asker a(options);
  REQUIRE(a.state().document.stack == Stack::decoder);
  Index row = -1;
  for (Index each = static_cast<Index>(a.results().run->trace->tokens.size()) - 1; each > 0 && row < 0; --each)
    if (!a.expected(each).looks.empty()) row = each;
  REQUIRE(row > 0);
  a.app.explorer().editor.pin(row);
  REQUIRE(a.driver.until([&] { return a.driver.shown("Hide it from this word"); }, 6000));
  REQUIRE(a.settle());
  a.driver.click("Hide it from this word");
  REQUIRE(a.settle());
  REQUIRE(a.state().document.edits.size() == 1);  // to which the editor gave the decoder's name
  CHECK(a.driver.shown("Show it again"));
  a.driver.click("Show it again");
  CHECK(a.state().document.edits.empty());
}

TEST_CASE("first steps keep what they point at; another word is answered in their place") {
  HEADSCOPE_NEEDS_DISPLAY();
  Asker a;
  a.app.settings().first_steps = true;
  REQUIRE(a.driver.until([&] { return a.driver.shown("Take it out"); }, 6000));
  const Index last = static_cast<Index>(a.results().run->trace->tokens.size()) - 1;
  a.app.explorer().editor.pin(last - 2);
  REQUIRE(a.driver.until([&] { return a.driver.shown("Unpin"); }, 6000));
  REQUIRE(a.settle());  // the sentence moves what stands below it
  CHECK_FALSE(a.driver.shown("Five findings"));
  a.driver.click("Unpin");
  CHECK(a.driver.shown("Five findings"));
}

}  // namespace headscope::word_line_test
