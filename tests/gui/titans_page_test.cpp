// The page of Titans: its diagram follows what the head gives, and heads of the model follow the page.

#include <doctest/doctest.h>

#include <cmath>

#include "core/attention/memory_paths.h"
#include "tests/gui/laboratory.h"
#include "tests/support/largest_difference.h"

namespace headscope::titans_page_test {

using testing::Laboratory;

TEST_CASE("the diagram follows the form that the head gives, and so does a head of the model") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab("tiny-gpt2");
  testing::Explore& e = lab.e;
  MechanismController& controller = lab.mechanisms.controller();
  lab.open("titans");
  e.driver.click("Steps");
  REQUIRE(lab.settled());
  CHECK(e.driver.shown("mechanism machine"));
  REQUIRE(controller.page()->result.memory);
  CHECK_FALSE(controller.page()->result.memory->form);
  const Tensor alone = controller.page()->result.output;
  e.driver.click("joined");
  REQUIRE(lab.settled());
  CHECK(controller.page()->result.memory->form == TitansForm::context);
  CHECK(e.driver.shown("mechanism machine"));
  e.driver.click("gate");
  REQUIRE(lab.settled());
  CHECK(controller.page()->result.memory->form == TitansForm::gate);

  e.driver.click("In the model");
  REQUIRE(lab.settled());
  e.driver.click("swap 0.2");
  REQUIRE(lab.settled());
  REQUIRE(e.state().document.edits.size() == 1);
  const auto has = [&](const char* words) {
    return describe(e.state().document.edits[0]).find(words) != std::string::npos;
  };
  CHECK(has("0.2: mechanism titans "));
  CHECK(has(" form=gate output=joined "));
  REQUIRE(e.results().effect);
  const double gate = e.results().effect->change.kl;
  CHECK(gate > 1e-4);
  e.driver.click("layer");
  REQUIRE(lab.settled());
  CHECK(has(" form=layer output=joined "));
  CHECK(e.results().effect->change.kl > 1e-4);
  CHECK(std::abs(e.results().effect->change.kl - gate) > 1e-4);
  e.driver.click("memory");  // alone again
  REQUIRE(lab.settled());
  CHECK(has(" form=layer output=memory "));
  e.driver.click("Steps");
  REQUIRE(lab.settled());
  CHECK_FALSE(controller.page()->result.memory->form);
  CHECK(testing::largest_difference(controller.page()->result.output, alone) == 0);
}

}  // namespace headscope::titans_page_test
