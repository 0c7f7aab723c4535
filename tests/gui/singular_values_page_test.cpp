// Transformer² as a person uses it: a bar dragged, groups moved, a low rank chosen; what follows is an edit like
// others.

#include "core/edits/singular_edit.h"
#include "core/metrics/next_token.h"
#include "tests/gui/analyse_page.h"

namespace headscope::singular_values_page_test {

using testing::Explore;

namespace {

struct Analysed : Explore {
  AnalyseWorkspace analyse;
  Analysed() : analyse(app.explorer().jobs, app.explorer().run) {
    app.add(analyse);
    app.settings().pages["Analyse"] = "singular";
    driver.frames(2);
    driver.click("Analyse");
    REQUIRE(still());
  }
  bool still() {
    int quiet = 0;
    return driver.until([&] { return (quiet = app.settled() ? quiet + 1 : 0) > 12; }, 20'000);
  }
  std::string edits() {
    std::string all;
    for (const Intervention& each : state().document.edits) all += (all.empty() ? "" : "; ") + describe(each);
    return all;
  }
  ImVec2 bar(int i, int of) {
    const Item z = driver.item("singular values/z");
    return {z.min.x + (z.max.x - z.min.x) * (static_cast<float>(i) - 0.5f) / static_cast<float>(of), z.max.y - 4};
  }
};

}  // namespace

TEST_CASE("a bar of the spectrum is dragged: one edit, live effect, one step of undo") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analysed a;
  const auto model = a.results().model.model;
  const int values = static_cast<int>(model->config().dims.d_model);
  const Item spectrum = a.driver.item("singular values/values");
  CHECK(spectrum.max.x - spectrum.min.x > 300);
  const ImVec2 first = a.bar(1, values);
  a.driver.drag(first, {first.x, first.y + 90}, 8);  // 90 pixels are one z: down to nothing
  REQUIRE(a.still());
  CHECK(a.edits() == "0.*: singular v 1=0");
  REQUIRE(a.results().effect);
  CHECK(a.results().effect->change.kl > 0);
  CHECK(a.driver.shown("singular maps"));
  a.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(a.still());
  CHECK(a.edits().empty());
  a.driver.key(ImGuiKey_Y, ImGuiMod_Ctrl);
  REQUIRE(a.still());
  CHECK(a.edits() == "0.*: singular v 1=0");
  // A double click puts 1 back.
  a.driver.click_at(first);
  a.driver.press();
  a.driver.release();
  REQUIRE(a.still());
  CHECK(a.edits().empty());
}

TEST_CASE("groups: the largest k alone are a matrix of low rank; sliders of groups and of one value; another matrix") {
  HEADSCOPE_NEEDS_DISPLAY();
  Analysed a;
  a.driver.click("W_Q");
  REQUIRE(a.still());
  a.driver.click("Low rank k");
  REQUIRE(a.still());
  CHECK(a.edits() == "0.*: singular q 9..=0");
  const Item part = a.driver.item("k largest × z");
  a.driver.drag(part.center(), {part.min.x, part.center().y});
  REQUIRE(a.still());
  CHECK(a.edits() == "0.*: singular q 1..=0");
  const Item one = a.driver.item("z of it");
  // Past its end: the panel may grow wider on the way, where its scroll bar goes.
  a.driver.drag({one.min.x + 4, one.center().y}, {one.max.x + 24, one.center().y});
  REQUIRE(a.still());
  CHECK(a.edits() == "0.*: singular q 1=3 2..=0");
  a.driver.click("As trained");
  REQUIRE(a.still());
  CHECK(a.edits().empty());
}

TEST_CASE(
    "an expert is learnt on the text and put among the edits: the loss falls as it said, and comes back by undo") {
  HEADSCOPE_NEEDS_DISPLAY();
  testing::AnalysePage page("tiny-gpt2");
  page.open("singular values", "singular", "singular values/z");
  CHECK_FALSE(page.driver.shown("Put it among the edits"));
  const double before = mean_loss(page.results().losses->now);
  page.driver.click("Start");
  REQUIRE(page.driver.until([&] { return page.driver.shown("Put it among the edits"); }, 20'000));
  REQUIRE(page.settle());
  page.driver.click("Put it among the edits");
  REQUIRE(page.settle());
  const auto& edits = page.state().document.edits;
  REQUIRE(edits.size() == 4);  // W_V of every layer
  for (const Intervention& edit : edits) CHECK(edit.action.as<ScaleSingular>()->matrix == WeightMatrix::v);
  const double after = mean_loss(page.results().losses->now);
  CHECK(after < before - 0.01);
  page.driver.click("Put it among the edits");  // again: none is there twice
  REQUIRE(page.settle());
  CHECK(page.state().document.edits.size() == 4);
  page.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(page.settle());
  CHECK(page.state().document.edits.empty());
  CHECK(mean_loss(page.results().losses->now) == before);
}

}  // namespace headscope::singular_values_page_test
