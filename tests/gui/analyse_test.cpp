// The Analyse workspace, used as a person uses it: find an instrument, sweep, cancel, sweep again, select what was
// found.

#include "tests/gui/explore.h"

using namespace headscope;
using headscope::testing::Explore;

namespace {
struct Analyse : Explore {
  AnalyseWorkspace analyse{app.explorer()};
  Analyse() {
    app.add(workspace_of(analyse));
    driver.frames(2);
    driver.click("Analyse");
    driver.frames(2);
  }
  bool quiet() {
    int still = 0;
    return driver.until([&] { return (still = app.settled() ? still + 1 : 0) > 8; }, 20'000);
  }
};
}  // namespace

TEST_CASE("every head is taken out, a head of the atlas is selected, and opened in Explore") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analyse a;
  a.driver.click("Head ablation");
  REQUIRE(a.quiet());            // a small model is swept at once
  CHECK(a.driver.shown("1.0"));  // a row of the list
  a.driver.click("zero");
  REQUIRE(a.quiet());
  a.driver.click("Layer 1 Head 2");
  a.driver.frames(2);
  CHECK(a.state().document.selected == HeadRef{1, 2});
  CHECK(a.app.requests().workspace == 1);
  a.driver.click("Open in Explore");
  a.driver.frames(2);
  CHECK(a.app.requests().workspace == 0);
}

TEST_CASE("a sweep is started, cancelled and started again") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analyse a;
  a.driver.click("Temperature sweep");
  REQUIRE(a.quiet());
  a.driver.click("33");  // some hundred passes
  REQUIRE(a.driver.until([&] { return a.driver.shown("Cancel"); }));
  a.driver.click("Cancel");
  a.driver.frames(2);
  REQUIRE(a.driver.shown("Start again"));
  REQUIRE(a.quiet());
  CHECK_FALSE(a.driver.shown("Cancel"));  // cancelled is cancelled
  a.driver.click("Start again");
  REQUIRE(a.driver.until([&] { return a.driver.shown("Cancel"); }));
  REQUIRE(a.quiet());
  CHECK(a.driver.shown("Start again"));
  a.driver.click("Layer 0 Head 3");
  a.driver.frames(2);
  CHECK(a.state().document.selected == HeadRef{0, 3});
}

TEST_CASE("the catalogue: searched, walked with the keys, found by the palette, remembered") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analyse a;
  auto& pages = a.app.settings().pages;
  a.driver.click("Smallest circuit");
  CHECK(pages["Analyse"] == "circuit");
  a.driver.click("Head ablation");
  CHECK(pages["Analyse"] == "ablate");
  const HeadRef before = a.state().document.selected;
  a.driver.key(ImGuiKey_DownArrow);
  a.driver.frames(2);
  CHECK(pages["Analyse"] != "ablate");           // the next; a slow machine repeats the key
  CHECK(a.state().document.selected == before);  // the key was the list's
  for (int i = 0; i < 4; ++i) a.driver.key(ImGuiKey_UpArrow);
  CHECK(pages["Analyse"] == "ablate");
  a.driver.click("##search");
  a.driver.type("circ");
  a.driver.frames(2);
  CHECK(a.driver.shown("Smallest circuit"));
  CHECK_FALSE(a.driver.shown("Head ablation"));
  a.driver.key(ImGuiKey_Enter);
  a.driver.frames(2);
  CHECK(pages["Analyse"] == "circuit");

  a.driver.click("Explore");
  a.driver.frames(2);
  a.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  a.driver.frames(3);
  a.driver.type("activation patching");
  a.driver.frames(2);
  a.driver.key(ImGuiKey_Enter);
  a.driver.frames(3);
  CHECK(a.app.requests().workspace == 1);
  CHECK(pages["Analyse"] == "patch");
}

TEST_CASE("a detector: a rule ranks the heads, a wrong one says where, cells are painted") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analyse a;
  a.driver.click("Detector");
  REQUIRE(a.quiet());
  REQUIRE(a.driver.shown("match 0.0"));
  // The previous-token head leads; a click on it selects it.
  CHECK(a.driver.item("match 0.0").min.y < a.driver.item("match 1.0").min.y);
  a.driver.click("match 0.0");
  a.driver.frames(2);
  CHECK(a.state().document.selected == HeadRef{0, 0});
  REQUIRE(a.quiet());
  a.driver.click("painted");
  a.driver.frames(2);
  a.driver.click("Clear");
  REQUIRE(a.quiet());
  CHECK_FALSE(a.driver.shown("match 0.0"));  // nothing is chosen, nobody leads
  const Item map = a.driver.item("detector map/map");
  a.driver.drag({map.min.x + 3, map.max.y - 12}, {map.min.x + (map.max.x - map.min.x) / 3, map.max.y - 12}, 8);
  REQUIRE(a.quiet());
  CHECK(a.driver.shown("match 1.3"));
}
