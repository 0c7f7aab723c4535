// Two passes as a person uses them: experts learnt, the text on screen read, an expert put among the edits.

#include "core/edits/singular_edit.h"
#include "core/metrics/next_token.h"
#include "tests/gui/analyse_page.h"

namespace headscope::self_adaptation_page_test {

using testing::AnalysePage;

TEST_CASE("experts are learnt, a prompt of a task chooses its own, and its edits do what was shown") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = AnalysePage::options("everyday-gpt2", 1600, 1000);
  options.text = "Tom Tom saw saw a a dog dog and and he he fed";
  AnalysePage page(options);
  page.open("transformer squared", "self-adaptation", "Start");
  CHECK_FALSE(page.driver.shown("expert losses"));
  const Item steps = page.driver.item("Steps");
  page.driver.drag(steps.center(), {steps.min.x + (steps.max.x - steps.min.x) * 0.5f, steps.center().y});
  page.driver.click("Start");
  REQUIRE(page.driver.until([&] { return page.driver.shown("Start again"); }, 200'000));
  REQUIRE(page.settle());
  CHECK(page.driver.shown("expert losses"));
  CHECK(page.driver.shown("expert z"));
  CHECK(page.driver.shown("no expert"));
  CHECK(page.driver.shown("› twice"));
  const double before = mean_loss(page.results().losses->now);
  page.choose("Put it among the edits");
  const auto& edits = page.state().document.edits;
  REQUIRE(edits.size() == 8);  // W_V and W_out of four layers
  for (const Intervention& edit : edits) CHECK(edit.action.as<ScaleSingular>());
  const double after = mean_loss(page.results().losses->now);
  CHECK(after < before - 0.3);
  // The choice is that of the text, not of the edits: again, none is there twice.
  page.choose("Put it among the edits");
  CHECK(page.state().document.edits == edits);
  page.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(page.settle());
  CHECK(page.state().document.edits.empty());
  page.choose("classifier");
  CHECK_FALSE(page.driver.shown("no expert"));  // it has no label
  CHECK(page.driver.shown("exchanged"));
  page.choose("few shots");
  CHECK(page.driver.shown("few shot search"));
  page.choose("twice");
  page.choose("Put it among the edits");
  CHECK(mean_loss(page.results().losses->now) < before - 0.3);
}

TEST_CASE("a model that tells no next token is refused in words, and learning can be stopped") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage page("everyday-gpt2");
  page.open("two passes", "self-adaptation", "Start");
  page.driver.click("Start");
  REQUIRE(
      page.driver.until([&] { return page.driver.shown("Cancel") && page.driver.shown("expert losses"); }, 200'000));
  page.driver.click("Cancel");
  REQUIRE(page.settle());
  CHECK(page.driver.shown("Start again"));
  CHECK(page.driver.shown("expert losses"));
  CHECK_FALSE(page.driver.shown("no expert"));

  AnalysePage other("tiny-bert");
  other.open("two passes");
  CHECK_FALSE(other.driver.shown("Start"));
}

}  // namespace headscope::self_adaptation_page_test
