// The Mechanisms workspace, used as a person uses it: found in the palette, a parameter changed, views walked, put into
// the model and taken back.

#include "tests/gui/explore.h"

using namespace headscope;
using headscope::testing::Explore;

TEST_CASE("a mechanism is found, changed, walked through, put into the model and taken out again") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  MechanismsWorkspace mechanisms(e.app.explorer());
  e.app.add(workspace_of(mechanisms));
  MechanismDesk& desk = mechanisms.desk();
  const auto settled = [&] {
    int quiet = 0;
    return e.driver.until([&] { return (quiet = e.app.settled() && desk.current() ? quiet + 1 : 0) > 8; }, 20'000);
  };
  e.driver.frames(2);
  e.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  e.driver.frames(2);
  e.driver.type("entmax");
  e.driver.frames(2);
  e.driver.key(ImGuiKey_Enter);
  REQUIRE(settled());
  CHECK(e.app.requests().workspace == 1);
  CHECK(desk.mechanism().id == "entmax");
  CHECK(e.driver.shown("mechanism compare"));
  CHECK(desk.page()->comparison.output_error > 1e-3);

  // α to its left end: softmax.
  const Item alpha = e.driver.item("α");
  e.driver.drag(alpha.center(), {alpha.min.x + 2, alpha.center().y});
  REQUIRE(settled());
  CHECK(desk.values().number("alpha") == 1);
  CHECK(desk.page()->comparison.output_error < 1e-5);

  e.driver.click("Steps");
  REQUIRE(settled());
  CHECK(e.driver.shown("mechanism steps"));
  e.driver.click("Recurrent view");
  REQUIRE(settled());
  e.driver.click("Linear, 1+elu");
  REQUIRE(settled());
  CHECK(e.driver.shown("mechanism states"));
  e.driver.click("In the model");
  REQUIRE(settled());
  CHECK(e.state().document.edits.empty());
  e.driver.click("swap 1.0");
  REQUIRE(settled());
  REQUIRE(e.state().document.edits.size() == 1);
  CHECK(describe(e.state().document.edits[0]) == "1.0: mechanism linear map=elu normalise=sum");
  REQUIRE(e.results().effect);
  CHECK(e.results().effect->change.kl > 0);
  e.driver.click("All heads");
  REQUIRE(settled());
  CHECK(describe(e.state().document.edits[0]) == "*: mechanism linear map=elu normalise=sum");
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(settled());
  CHECK(e.state().document.edits.empty());

  e.driver.click("By hand");
  REQUIRE(settled());
  CHECK(desk.page()->input.m() == 3);
  e.driver.click("Random");
  REQUIRE(settled());
  CHECK(desk.page()->input.n() == 24);
}
