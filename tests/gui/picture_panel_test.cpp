// A model of pictures in the window: the picture in place of the prompt, pinned and painted by hand, its classes before
// and after; what needs a text says so.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/gui/analyse_page.h"
#include "tests/support/paths.h"

namespace headscope::picture_panel_test {

using testing::AnalysePage;
using testing::Explore;
using testing::reference;

namespace {
AppOptions vision(int width, int height) {
  AppOptions out = Explore::options(width, height);
  out.model = reference("vision/vit");
  out.image = reference("vision/picture.png");
  return out;
}
}  // namespace

TEST_CASE("a click on the picture pins a patch, dragging hides patches, the right button shows them again") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1600, 1000}}) {
    CAPTURE(width);
    Explore e(vision(width, height));
    REQUIRE(e.results().run->trace->picture);
    CHECK_FALSE(e.driver.shown("##prompt"));
    REQUIRE(e.driver.until([&] { return e.driver.shown("picture/patch.1.1"); }));
    e.driver.click("picture/patch.1.1");
    REQUIRE(e.settle());
    CHECK(e.state().document.query == 5);
    e.driver.click("picture/patch.1.1");
    REQUIRE(e.settle());
    CHECK_FALSE(e.state().document.query);
    e.driver.click("token 0");  // CLS
    REQUIRE(e.settle());
    CHECK(e.state().document.query == 0);
    e.driver.drag(e.driver.item("picture/patch.0.0").center(), e.driver.item("picture/patch.0.2").center(), 12);
    REQUIRE(e.settle());
    REQUIRE(e.state().document.edits.size() == 1);
    CHECK(describe(e.state().document.edits.front()) == "*@1..3: hide patches grey");
    CHECK(e.state().document.query == 0);  // painting pins nothing
    REQUIRE(e.driver.until([&] { return e.results().effect != nullptr; }));
    CHECK(e.results().effect->change.kl > 0);
    e.driver.move_to(e.driver.item("picture/patch.0.1").center());
    e.driver.press(1);
    e.driver.frames(2);
    e.driver.release(1);
    REQUIRE(e.settle());
    CHECK(e.state().document.edits.size() == 2);  // what was between them is seen again
    e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
    e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
    REQUIRE(e.settle());
    CHECK(e.state().document.edits.empty());
  }
}

TEST_CASE("a picture dropped on a model of pictures is read, on one of texts refused in a sentence") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = vision(1280, 720);
  options.image.reset();
  App app(options);
  ExploreWorkspace workspace;
  headscope::testing::Driver driver(app.window(), [&] { app.frame(); });
  app.add(workspace);
  REQUIRE(driver.until([&] { return app.settled() && app.explorer().results().model.model; }));
  driver.frames(4);
  CHECK(driver.shown("Open a picture…"));
  CHECK_FALSE(app.explorer().results().run);
  app.explorer().editor.set_image(reference("vision/picture.jpg"));
  REQUIRE(driver.until([&] { return app.settled() && app.explorer().results().run; }));
  CHECK(driver.until([&] { return driver.shown("picture/patch.2.2"); }));
}

TEST_CASE("every page of Analyse has a picture's numbers, or a sentence; none breaks the window") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage page(vision(1280, 720));
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
        CHECK(std::ranges::count(message->text, '\n') <= 1);  // what was expected and found, perhaps a hint
      page.app.explorer().jobs.dismiss();
    }
}

TEST_CASE("the page of patches lays what becomes of each over the picture, and compares the positions of all") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1600, 1000}}) {
    CAPTURE(width);
    AnalysePage page(vision(width, height));
    page.open("patches and positions", "patches", "patches/patch.1.1");
    page.driver.click("patches/patch.1.1");
    REQUIRE(page.settle());
    CHECK(page.state().document.query == 5);
    page.choose("Grid of positions");
    REQUIRE(page.driver.until([&] { return page.driver.shown("positions/map"); }));
    // The picture has 3 × 3 patches: a grid of grids of 3 × 3 cells with a line between them. In the middle of it the
    // patch in the middle meets itself.
    page.driver.click("positions/map");
    REQUIRE(page.settle());
    CHECK(page.state().document.query == 5);
    const auto& box = page.driver.item("positions/map");
    page.driver.click_at({box.min.x + (box.max.x - box.min.x) * 0.5f / 11, box.center().y});  // left, in the middle row
    REQUIRE(page.settle());
    CHECK(page.state().document.query == 4);
    page.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
    page.choose("Ask a word");
    REQUIRE(page.driver.until([&] { return page.driver.shown("Strongest patch"); }));
    page.driver.click("patches/patch.2.0");
    REQUIRE(page.settle());
    CHECK(page.state().document.query == 7);
    CHECK(page.driver.shown("Place of the class"));
  }
}

}  // namespace headscope::picture_panel_test
