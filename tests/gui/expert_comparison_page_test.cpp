// Experts by reward and beside adapters as a person uses the page: both are learnt, and what is told is shown.

#include "tests/gui/analyse_page.h"

namespace headscope::expert_comparison_page_test {

using testing::AnalysePage;

TEST_CASE(
    "experts are learnt by reward, and two together beside two adapters; a model without a next token is refused") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage page("everyday-gpt2");
  page.open("REINFORCE", "expert-comparison", "Start");
  const Item steps = page.driver.item("Steps");
  page.driver.drag(steps.center(), {steps.min.x + 2, steps.center().y});
  page.driver.click("Start");
  REQUIRE(page.driver.until([&] { return page.driver.shown("Start again"); }, 60'000));
  REQUIRE(page.settle());
  CHECK(page.driver.shown("expert rewards"));
  CHECK(page.driver.shown("rewards by step"));
  CHECK(page.driver.shown("twice"));
  page.choose("adapters");
  CHECK_FALSE(page.driver.shown("expert composition"));
  page.driver.click("Start");
  REQUIRE(page.driver.until([&] { return page.driver.shown("Start again"); }, 60'000));
  REQUIRE(page.settle());
  CHECK(page.driver.shown("expert composition"));
  page.choose("rewards");  // what was learnt is still there
  CHECK(page.driver.shown("expert rewards"));

  AnalysePage other("tiny-bert");
  other.open("REINFORCE");
  CHECK_FALSE(other.driver.shown("Start"));
}

}  // namespace headscope::expert_comparison_page_test
