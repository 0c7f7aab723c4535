// A model of which some layers attend and others mix tokens by a state, in the window: what it says of a layer, and not
// of the model.

#include <algorithm>

#include "tests/gui/analyse_page.h"
#include "tests/gui/with_letters.h"

namespace headscope::hybrid_window_test {

using testing::AnalysePage;
using testing::Explore;
using testing::with_letters;

namespace {
AppOptions opened(const std::string& family) {
  AppOptions out = AnalysePage::options("induction", 1280, 720);
  out.model = with_letters(family);
  out.text = "who took what";
  return out;
}
}  // namespace

TEST_CASE("hybrid: Explore tells of the head that is looked at whether it has a softmax and scores") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore s(opened("granitemoehybrid"));  // a state, attention, a state, attention
  for (int layer = 0; layer < 4; ++layer) {
    CAPTURE(layer);
    s.app.explorer().editor.select({layer, 1});
    REQUIRE(s.settle());
    const bool attends = s.results().model.model->config().dims.attends(layer);
    CHECK(attends == (layer % 2 == 1));
    CHECK((s.results().map({layer, 1})->place().kind == MapKind::probability) == attends);
    s.app.explorer().editor.view().edit_scope = EditScope::head;
    s.driver.frames(3);
    CHECK(s.driver.shown("Temperature") == attends);
  }
  // Of all heads it can be asked, whichever is looked at: those that attend follow.
  s.app.explorer().editor.select({0, 1});
  s.app.explorer().editor.view().edit_scope = EditScope::all;
  s.driver.frames(3);
  CHECK(s.driver.shown("Temperature"));
}

TEST_CASE("hybrid: the page State has the layers with a state alone") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage page(opened("granitemoehybrid"));
  page.open("state of a state space", "state", "state/matrix");
  const Item matrix = page.driver.item("state/matrix");
  page.driver.click_at({matrix.center().x, matrix.min.y + 0.75f * (matrix.max.y - matrix.min.y)});  // the second row
  REQUIRE(page.settle());
  page.driver.frames(3);
  CHECK(page.driver.told("layer 2"));
  page.choose("Lanes of a layer");
  CHECK(page.driver.shown("state/matrix"));
}

TEST_CASE("hybrid: every page of Analyse shows something or says in a line what it lacks") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const char* family : {"granitemoehybrid", "nemotron_h"}) {
    AnalysePage page(opened(family));
    for (const HeadId head : {HeadId{0, 1}, HeadId{family == std::string("nemotron_h") ? 2 : 1, 1}}) {
      page.app.explorer().editor.select(head);
      REQUIRE(page.settle());
      for (const CatalogueGroup& group : page.analyse.pages())
        for (const CatalogueEntry& entry : group.entries) {
          CAPTURE(family);
          CAPTURE(entry.id);
          page.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
          page.driver.frames(2);
          page.driver.type(entry.title);
          page.driver.frames(2);
          page.driver.key(ImGuiKey_Enter);
          CHECK(page.settle());
          if (const auto& message = page.app.explorer().jobs.message()) {
            CAPTURE(message->text);
            CHECK(std::ranges::count(message->text, '\n') <= 1);
            CHECK(message->text.find("a trace that recorded it") == std::string::npos);
          }
          page.app.explorer().jobs.dismiss();
        }
    }
  }
}

}  // namespace headscope::hybrid_window_test
