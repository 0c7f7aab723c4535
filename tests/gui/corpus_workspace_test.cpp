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

namespace {
/// The workspace with a corpus read by a bundled model.
struct CorpusOf {
  Explore e;
  CorpusController controller{e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run};
  CorpusWorkspace corpus{controller};

  CorpusOf(const char* model, int width, int height) : e(options(model, width, height)) {
    e.app.add(corpus);
    e.driver.frames(2);
    e.driver.click("Corpus");
    controller.draft().count = 8;
    e.driver.frames(2);
    e.driver.click("Start");
    REQUIRE(e.driver.until([&] { return controller.phase() == CorpusController::Phase::finished; }, 20'000));
    settle();
  }
  static AppOptions options(const char* model, int width, int height) {
    AppOptions out = Explore::options(width, height);
    out.example = model;
    return out;
  }
  void settle() {
    int quiet = 0;
    REQUIRE(e.driver.until([&] { return (quiet = e.app.settled() ? quiet + 1 : 0) > 8; }, 20'000));
  }
};
constexpr std::pair<int, int> sizes[] = {{1280, 720}, {1600, 1000}};
}  // namespace

TEST_CASE("pairs: every stack has its heads and examples, which open as pairs at that stack") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : sizes) {
    CorpusOf room("tiny-translate", width, height);
    Explore& e = room.e;
    CHECK(e.driver.shown("Drawn pairs"));
    CHECK_FALSE(e.driver.shown("By lines"));  // a pair is a line
    CHECK(room.controller.results()->stacks().size() == 3);
    e.driver.click("Encoder");
    room.settle();
    CHECK(e.state().document.stack == Stack::encoder);
    CHECK(e.driver.shown("Point 1.3"));
    e.driver.key(ImGuiKey_N, ImGuiMod_Alt);
    e.driver.key(ImGuiKey_N, ImGuiMod_Alt);
    room.settle();
    CHECK(e.state().document.stack == Stack::cross);
    CHECK(e.driver.shown("Point 1.3"));  // by a metric that such heads have, whatever was chosen
    e.driver.click("Layer 0 Head 2");
    room.settle();
    CHECK(e.state().document.selected == HeadId{0, 2});
    const auto* read = room.controller.examples({0, 2}, 0, ExampleKind::highest, Stack::cross);
    REQUIRE(read);
    REQUIRE_FALSE(read->empty());
    const RunRequest pair = passage_request(
        CorpusKind::pairs, passage_text(room.controller.results()->source, read->front().example.place));
    e.driver.click("example 0");
    REQUIRE(e.driver.until([&] { return e.state().document.source == pair.source; }));
    REQUIRE(e.settle());
    CHECK(e.app.requests().workspace == 0);
    CHECK(e.state().document.text == pair.text);
    CHECK(e.state().document.stack == Stack::cross);
    CHECK(e.results().run->trace == e.results().run->whole->cross);
    CHECK(e.state().document.query);
  }
}

TEST_CASE("pictures: examples are pictures, and open as such") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : sizes) {
    CorpusOf room("tiny-vit", width, height);
    Explore& e = room.e;
    CHECK(e.driver.shown("Drawn pictures"));
    CHECK_FALSE(e.driver.shown("Encoder"));
    e.driver.click("Point 2.1");
    CHECK(e.state().document.selected == HeadId{2, 1});
    room.settle();
    CHECK(e.driver.shown("example picture 0"));
    const auto* read = room.controller.examples({2, 1}, 0, ExampleKind::highest);
    REQUIRE(read);
    REQUIRE_FALSE(read->empty());
    const std::string path = passage_text(room.controller.results()->source, read->front().example.place);
    e.driver.click("example 0");
    REQUIRE(e.driver.until([&] { return e.state().document.image == path; }));
    REQUIRE(e.settle());
    CHECK(e.app.requests().workspace == 0);
    CHECK(e.results().run->request.image == path);
  }
}

}  // namespace headscope::corpus_workspace_test
