// The page of a state space: steps by layer, by lane; and what a model of attention says there.

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/gui/analyse_page.h"

namespace headscope::state_page_test {

using testing::AnalysePage;

TEST_CASE("the page State tells steps token by token, of all layers and lane by lane; a click pins a token") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1600, 1000}}) {
    CAPTURE(width);
    AppOptions options = AnalysePage::options("tiny-mamba", width, height);
    options.text = "In the village there lived Rosa.";  // short: all of it is in sight
    AnalysePage page(options);
    page.open("state of a state space", "state", "state/matrix");
    CHECK_FALSE(page.state().document.query);
    page.driver.click("state/matrix");
    REQUIRE(page.settle());
    REQUIRE(page.state().document.query);
    const Index pinned = *page.state().document.query;
    CHECK(pinned < std::ssize(page.results().run->trace->tokens));
    page.choose("Lanes of a layer");
    CHECK(page.driver.shown("state/matrix"));
    for (const char* number : {"kept", "written", "step"}) {
      page.choose(number);
      CHECK(page.driver.shown("state/matrix"));
    }
    CHECK(page.state().document.query == pinned);
  }
}

TEST_CASE(
    "pages about queries, keys and scores say in a sentence why a state space has none, and State why others do") {
  HEADSCOPE_NEEDS_DISPLAY();
  {
    AnalysePage page("tiny-mamba", 1280, 720);
    for (const CatalogueGroup& group : page.analyse.pages())
      for (const CatalogueEntry& entry : group.entries) {
        CAPTURE(entry.id);
        page.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
        page.driver.frames(2);
        page.driver.type(entry.title);
        page.driver.frames(2);
        page.driver.key(ImGuiKey_Enter);
        CHECK(page.settle());
        if (const auto& message = page.app.explorer().jobs.message())
          CHECK(std::ranges::count(message->text, '\n') <= 1);
        page.app.explorer().jobs.dismiss();
      }
  }
  AnalysePage other("tiny-gpt2", 1280, 720);
  other.open("state of a state space");
  CHECK_FALSE(other.driver.shown("state/matrix"));
}

}  // namespace headscope::state_page_test
