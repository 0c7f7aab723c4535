// The page of linear layers, used as a person uses it: it searches by itself, its set is tried in Explore, what is
// allowed and what stands in softmax's place are changed.

#include <algorithm>
#include <cmath>

#include "core/analysis/linear_layers.h"
#include "core/attention/mechanism.h"
#include "core/edits/mechanism_edit.h"
#include "core/metrics/next_token.h"
#include "tests/gui/analyse_page.h"

namespace headscope::linear_layers_page_test {

using testing::AnalysePage;

namespace {

/// What the library finds on what is on screen.
std::shared_ptr<const LinearLayers> found_by_library(AnalysePage& page, const std::string& mechanism,
                                                     LinearLayersAsked::By by = LinearLayersAsked::By::loss) {
  LinearLayersAsked asked;
  asked.run = page.results().run->request;
  asked.run.edits.clear();
  asked.mechanism = text_of(parse_mechanism(mechanism));
  asked.by = by;
  LinearLayersSearch search(page.results().model, asked);
  Backend backend(1);
  while (!search.finished()) search.step(Ctx{backend});
  return search.result();
}

/// The layers whose edits have them run a mechanism, and which one.
std::vector<int> linear_on_screen(AnalysePage& page, const std::string& id) {
  std::vector<int> out;
  for (const Intervention& edit : page.state().document.edits) {
    const auto* swap = edit.action.as<SwapMechanism>();
    REQUIRE(swap);
    CHECK(swap->spec.starts_with(id + " "));
    REQUIRE(edit.target.layer);
    CHECK_FALSE(edit.target.head);
    out.push_back(*edit.target.layer);
  }
  return out;
}

std::vector<int> others(const std::vector<int>& kept, int layers) {
  std::vector<int> out;
  for (int layer = 0; layer < layers; ++layer)
    if (std::ranges::count(kept, layer) == 0) out.push_back(layer);
  return out;
}

}  // namespace

TEST_CASE(
    "which layers may become linear: searched by itself, tried in Explore, with another mechanism and threshold") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage page("everyday-gpt2", 1280, 720);
  page.open("which layers need attention", "linear-layers", "linear search/matrix");
  CHECK(page.driver.shown("kept softmax"));
  CHECK(page.driver.shown("one linear layer"));
  const auto expected = found_by_library(page, "linear");
  const int fewest = expected->fewest(0.1);
  REQUIRE(fewest > 0);
  REQUIRE(fewest < expected->layers);
  page.driver.click("Try these in Explore");
  page.driver.frames(2);
  CHECK(page.app.requests().workspace == 0);
  REQUIRE(page.settle());
  CHECK(linear_on_screen(page, "linear") == others(expected->kept_layers(fewest), expected->layers));
  CHECK(mean_loss(page.results().losses->now) == doctest::Approx(expected->greedy(fewest)).epsilon(1e-6));
  // What is tried now is no other question: the page says and does the same.
  page.open("linear layers", "linear-layers", "linear search/matrix");
  page.driver.click("Try these in Explore");
  REQUIRE(page.settle());
  CHECK(linear_on_screen(page, "linear") == others(expected->kept_layers(fewest), expected->layers));
  page.app.explorer().editor.set_edits({});
  REQUIRE(page.settle());

  // A click on the row of one layer with softmax allows what that costs.
  page.open("linear layers", "linear-layers", "linear search/matrix");
  const Item map = page.driver.item("linear search/matrix");
  const float cell = (map.max.y - map.min.y) / static_cast<float>(expected->layers);
  page.driver.click_at({map.min.x + 8, map.min.y + cell / 2});
  REQUIRE(page.settle());
  page.driver.click("Try these in Explore");
  REQUIRE(page.settle());
  CHECK(linear_on_screen(page, "linear") == others(expected->kept_layers(1), expected->layers));
  page.app.explorer().editor.set_edits({});
  REQUIRE(page.settle());

  // Other edits stay.
  page.open("linear layers", "linear-layers", "linear search/matrix");
  const Intervention since = parse_intervention("3.1: ablate zero", "test");
  page.app.explorer().editor.set_edits({since});
  REQUIRE(page.settle());
  page.driver.click("Try these in Explore");
  REQUIRE(page.settle());
  CHECK(std::ranges::count(page.state().document.edits, since) == 1);
  CHECK(page.state().document.edits.size() > 1);
  page.app.explorer().editor.set_edits({});
  REQUIRE(page.settle());

  // By the answer, other layers go.
  page.open("linear layers", "linear-layers", "linear search/matrix");
  page.choose("KL of the answer");
  const auto by_answer = found_by_library(page, "linear", LinearLayersAsked::By::answer);
  const double much = std::ceil((expected->greedy(1) - expected->before.loss) * 1000) / 1000;  // as clicked above
  page.driver.click("Try these in Explore");
  REQUIRE(page.settle());
  CHECK(linear_on_screen(page, "linear") == others(by_answer->kept_layers(by_answer->fewest(much)), by_answer->layers));
  page.app.explorer().editor.set_edits({});
  REQUIRE(page.settle());
  page.open("linear layers", "linear-layers", "linear search/matrix");
  page.choose("loss of the text");

  // Another mechanism is searched anew.
  page.open("linear layers", "linear-layers", "linear search/matrix");
  page.choose("Linear mechanism");
  page.choose(std::string(find_mechanism("gated")->name));
  const auto gated = found_by_library(page, "gated");
  page.driver.click("Allowed");
  const Item allowed = page.driver.item("Allowed");
  page.driver.drag(allowed.center(), {allowed.max.x - 60, allowed.center().y});  // so much that all may go
  REQUIRE(page.settle());
  page.driver.click("Try these in Explore");
  REQUIRE(page.settle());
  for (const Intervention& edit : page.state().document.edits)
    CHECK(edit.action.as<SwapMechanism>()->spec.starts_with("gated "));
  CHECK(page.state().document.edits.size() >= 1);
}

TEST_CASE("a model that looks both ways is offered what can run there") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage page("tiny-bert", 1280, 720);
  page.open("linear layers");
  page.driver.click("Linear mechanism");
  page.driver.frames(3);
  CHECK(page.driver.shown(std::string(find_mechanism("relu")->name)));
  CHECK_FALSE(page.driver.shown(std::string(find_mechanism("lightning")->name)));
}

}  // namespace headscope::linear_layers_page_test
