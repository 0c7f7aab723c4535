// The list of edits, used as a person uses it.

#include <algorithm>
#include <cstring>

#include "core/edits/patch_edit.h"
#include "core/edits/switch_off_edit.h"
#include "tests/gui/explore.h"

namespace headscope::edits_test {

using testing::Explore;

TEST_CASE("a head is ablated by a key, by words and in the form, switched off, and brought back") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  e.driver.click("Layer 1 Head 0");
  REQUIRE(e.settle());
  const double before = e.results().run->next.front().probability;
  CHECK(before > 0.9);
  e.driver.key(ImGuiKey_X);
  REQUIRE(e.settle());
  REQUIRE(e.state().document.edits.size() == 1);
  CHECK(describe(e.state().document.edits[0]) == "1.0: ablate zero");
  CHECK(e.results().run->next.front().probability < 0.2);  // the head that looked back is gone
  REQUIRE(e.results().effect);
  CHECK(e.results().effect->change.kl > 1);

  e.driver.click("edit 0 on");
  REQUIRE(e.settle());
  CHECK_FALSE(e.state().document.edits[0].enabled);
  CHECK(e.results().run->next.front().probability == doctest::Approx(before));
  e.driver.click("remove edit 0");
  REQUIRE(e.settle());
  CHECK(e.state().document.edits.empty());

  e.driver.click("##edit words");
  e.driver.type("0.*: switch off mlp");
  e.driver.key(ImGuiKey_Enter);
  REQUIRE(e.settle());
  REQUIRE(e.state().document.edits.size() == 1);
  CHECK(e.state().document.edits[0].action.as<SwitchOff>());

  e.driver.click("##edit words");
  e.driver.type("nonsense");
  e.driver.key(ImGuiKey_Enter);
  CHECK(e.state().document.edits.size() == 1);
  CHECK_FALSE(e.app.explorer().jobs.message());  // said beside the line, not in a box

  e.driver.key(ImGuiKey_Escape);
  e.driver.click("Add an edit");
  e.driver.frames(2);
  e.driver.click("mean");
  e.driver.frames(2);
  e.driver.click("Add");
  REQUIRE(e.settle());
  REQUIRE(e.state().document.edits.size() == 2);
  CHECK(describe(e.state().document.edits[1]) == "1.0: ablate mean");
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  CHECK(e.state().document.edits.size() == 1);
}

TEST_CASE("a patch from a longer text: its pairs are shown, taken apart by hand, and counted") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  e.app.explorer().editor.set_text("Mr Quill kept bees.");
  REQUIRE(e.settle());
  e.driver.click("##edit words");
  e.driver.type("0.*: patch resid_pre from \"Mr Quill never kept bees.\" aligned tokens");
  e.driver.key(ImGuiKey_Enter);
  REQUIRE(e.settle());
  REQUIRE(e.state().document.edits.size() == 1);
  const auto pairing = [&] { return e.state().document.edits[0].action.as<Patch>()->align; };
  const auto before = e.results().run->trace->logits.packed();
  e.driver.click("pairs of edit 0");
  REQUIRE(e.driver.until([&] { return e.driver.shown("edit pairs/a.3"); }));
  e.driver.click("edit pairs/a.3");
  e.driver.click("edit pairs/b.3");
  REQUIRE(e.settle());
  REQUIRE(pairing().by == TextPairing::By::hand);
  CHECK(std::ranges::none_of(pairing().pairs, [](const auto& pair) { return pair.first == 3; }));
  CHECK(pairing().pairs.size() + 1 == e.results().run->trace->tokens.size());
  REQUIRE(e.driver.until([&] { return e.driver.shown("edit pairs/a.3"); }));
  e.driver.click("by tokens");
  REQUIRE(e.settle());
  CHECK(pairing() == TextPairing(TextPairing::By::tokens));
  const auto again = e.results().run->trace->logits.packed();
  CHECK(std::memcmp(before.data(), again.data(), before.bytes()) == 0);
  e.driver.key(ImGuiKey_Escape);
}

}  // namespace headscope::edits_test
