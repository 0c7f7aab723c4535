// The Corpus workspace, used as a person uses it: read, stop, choose a head, look at an example.

#include "tests/gui/explore.h"

namespace headscope::corpus_workspace_test {

using testing::Explore;

TEST_CASE("a corpus is read, stopped and gone on with; a point selects its head, an example opens its text") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  CorpusController controller(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run);
  CorpusWorkspace corpus(controller);
  e.app.add(corpus);
  e.driver.frames(2);
  e.driver.click("Corpus");
  e.driver.frames(2);
  controller.draft().count = 1'000'000;
  e.driver.frames(2);
  e.driver.click("Start");
  REQUIRE(
      e.driver.until([&] { return controller.results() && controller.results()->statistics.passages() > 3; }, 20'000));
  e.driver.click("Stop");
  int quiet = 0;  // what was under way is still taken in
  const auto settled = [&] { return (quiet = e.app.settled() ? quiet + 1 : 0) > 8; };
  REQUIRE(e.driver.until(settled, 20'000));
  CHECK(controller.phase() == CorpusController::Phase::stopped);
  const std::uint64_t passages = controller.results()->statistics.passages();
  e.driver.frames(5);
  CHECK(controller.results()->statistics.passages() == passages);
  e.driver.click("Resume");
  REQUIRE(e.driver.until([&] { return controller.results()->statistics.passages() > passages; }, 20'000));
  e.driver.click("Stop");
  quiet = 0;
  REQUIRE(e.driver.until(settled, 20'000));

  e.driver.click("Point 1.0");
  CHECK(e.state().document.selected == HeadId{1, 0});
  REQUIRE(e.driver.until(settled, 20'000));
  e.driver.click("Layer 0 Head 1");  // the tiles below
  CHECK(e.state().document.selected == HeadId{0, 1});
  e.driver.click("Vertical metric");
  e.driver.frames(2);
  e.driver.click("Sink: first token");
  REQUIRE(e.driver.until(settled, 20'000));
  e.driver.click("Typical");
  e.driver.click("Highest");
  REQUIRE(e.driver.until(settled, 20'000));
  const std::string before = e.state().document.text;
  const HeadId selected_before = e.state().document.selected;
  e.driver.click("example 0");
  REQUIRE(e.driver.until([&] { return e.state().document.text != before; }, 20'000));
  REQUIRE(e.settle());
  CHECK(e.app.requests().workspace == 0);
  CHECK(e.state().document.selected == HeadId{0, 1});
  REQUIRE(e.state().document.query);        // the row that makes it an example
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);  // one step: text, head and row
  REQUIRE(e.settle());
  CHECK(e.state().document.text == before);
  CHECK(e.results().run->trace->text == before);
  CHECK_FALSE(e.state().document.query);
  CHECK(e.state().document.selected == selected_before);
}

}  // namespace headscope::corpus_workspace_test
