// Transformer² as a person uses it: a bar dragged, groups moved, a low rank chosen; what follows is an edit like
// others.

#include "tests/gui/explore.h"

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

}  // namespace headscope::singular_values_page_test
