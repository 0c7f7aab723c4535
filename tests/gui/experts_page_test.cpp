// The Experts page as a person uses it: on a model with experts, of which some layers have none, and on one without.

#include "core/analysis/expert_routing.h"
#include "tests/gui/analyse_page.h"
#include "tests/gui/with_letters.h"

namespace headscope::experts_page_test {

using testing::AnalysePage;
using testing::with_letters;

namespace {

AppOptions opened(const std::filesystem::path& model) {
  AppOptions out = AnalysePage::options("induction", 1600, 1000);
  out.model = model;
  out.text = "who took what";
  return out;
}

struct Experts : AnalysePage {
  explicit Experts(const std::string& family) : AnalysePage(opened(with_letters(family))) {}
  RoutingReport report() {
    RunRequest request;
    request.ids = results().run->trace->ids();
    request.add_bos = false;
    request.capture.sites = expert_routing_sites(*results().model.model);
    Backend backend(1);
    return read_expert_routing(*results().model.model, *run(results().model, request, Ctx{backend}));
  }
};

}  // namespace

TEST_CASE("the page of experts names every cell, tells weights, pins tokens and goes from all layers to one") {
  HEADSCOPE_NEEDS_DISPLAY();
  Experts p("qwen3_moe");  // of whose four layers the third has one MLP for all
  p.open("Experts", "experts", "routing");
  const RoutingReport report = p.report();
  REQUIRE(report.layers.size() == 3);
  CHECK(p.driver.shown("load"));
  const auto taken = experts_of(report.layers[0], 4);
  REQUIRE(static_cast<int>(taken.size()) == report.per_token);
  // A cell that took the token tells its weight; one that did not says so.
  p.driver.hover(fmt::format("Expert {} Token 4", taken[0]));
  p.driver.frames(3);
  CHECK(p.driver.told(fmt::format("expert {} took", taken[0])));
  CHECK(p.driver.told(fmt::format("weight {:.4f}", report.layers[0].weights.at(4, taken[0]))));
  Index idle = 0;
  while (report.layers[0].weights.at(4, idle) != 0) ++idle;
  p.driver.hover(fmt::format("Expert {} Token 4", idle));
  p.driver.frames(3);
  CHECK(p.driver.told(fmt::format("expert {} did not take", idle)));
  // A click pins the token, here and everywhere.
  p.choose(fmt::format("Expert {} Token 4", taken[0]));
  CHECK(p.state().document.query == 4);
  // Of all layers a click goes to the one that it is in.
  p.choose("All layers");
  CHECK(p.driver.shown("loads"));
  CHECK_FALSE(p.driver.shown("routing"));
  CHECK_FALSE(p.driver.shown("Layer 2 Expert 0"));  // which has one MLP for all
  p.driver.hover("Layer 3 Expert 1");
  p.driver.frames(3);
  CHECK(p.driver.told(fmt::format("layer 3 expert 1: {} tokens", report.layers[2].tokens[1])));
  p.choose("Layer 3 Expert 1");
  REQUIRE(p.driver.shown("routing"));
  const auto there = experts_of(report.layers[2], 4);
  p.driver.hover(fmt::format("Expert {} Token 4", there[0]));
  p.driver.frames(3);
  CHECK(p.driver.told(fmt::format("weight {:.4f}", report.layers[2].weights.at(4, there[0]))));
}

TEST_CASE("shared experts and groups come to the page too") {
  HEADSCOPE_NEEDS_DISPLAY();
  Experts p("deepseek_v3-moe");
  p.open("Experts", "experts", "routing");
  const RoutingReport report = p.report();
  CHECK(report.experts == 12);
  CHECK(p.driver.shown("Expert 11 Token 0"));
}

TEST_CASE("a model without experts says which have some") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage p("induction");
  p.open("Experts");
  CHECK(p.app.settings().pages["Analyse"] == "experts");
  CHECK_FALSE(p.driver.shown("routing"));
  CHECK(p.driver.shown("This model has no experts"));
  // One click opens the bundled one that has.
  p.driver.click("Open tiny-mixtral");
  REQUIRE(p.driver.until([&] { return p.driver.shown("routing"); }, 8000));
  CHECK(p.results().model.model->config().name == "tiny-mixtral");
  REQUIRE(p.driver.until([&] { return p.driver.shown("load"); }, 8000));  // its height is what the first one leaves
  CHECK(p.driver.shown("load/load.7"));
  CHECK(p.driver.shown("load/words.7"));
  // Bars and the even share are of one scale.
  RunRequest request;
  request.ids = p.results().run->trace->ids();
  request.add_bos = false;
  request.capture.sites = expert_routing_sites(*p.results().model.model);
  Backend backend(1);
  const RoutingReport report =
      read_expert_routing(*p.results().model.model, *run(p.results().model, request, Ctx{backend}));
  const auto bar = p.driver.item("load/load.7"), even = p.driver.item("load/even");
  const double load = report.layers[0].load[7], length = static_cast<double>(bar.max.x - bar.min.x);
  CHECK(static_cast<double>(even.center().x - bar.min.x) == doctest::Approx(length / load / 8).epsilon(0.03));
}

}  // namespace headscope::experts_page_test
