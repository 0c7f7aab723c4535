// Every page of every workspace while there is nothing to show: before a model is open, and after the text was emptied
// on pages that still hold answers about it.

#include "app/all_workspaces.h"
#include "tests/gui/explore.h"

namespace headscope::empty_test {

using testing::Explore;

namespace {

struct Program {
  explicit Program(const AppOptions& options) : app(options) {}
  App app;
  AllWorkspaces workspaces{app};
  headscope::testing::Driver driver{app.window(), [this] { app.frame(); }};

  /// Shows a page, with `wait` until its answer has come or is long in coming (of a workspace without pages: itself)
  /// with the pointer over the middle and over the right column.
  void show(int workspace, const std::string& title, const std::string& page, bool wait) {
    INFO(title, " ", page);
    app.requests().workspace = workspace;
    if (!page.empty()) app.settings().pages[title] = page;
    driver.frames(3);
    int quiet = 0;
    if (wait) driver.until([&] { return (quiet = app.settled() ? quiet + 1 : 0) > 2; }, 90);
    driver.move_to({500, 420});
    driver.move_to({800, 300});
  }
  void show_all(bool wait) {
    for (int workspace = 0; workspace < static_cast<int>(workspace_list.size()); ++workspace)
      show(workspace, "", "", wait);
    for (const UiRequests::Page& page : std::vector(app.requests().pages)) show(page.workspace, page.of, page.id, wait);
    MechanismController& controller = workspaces.mechanisms.controller();
    for (const auto view : {MechanismView::compare, MechanismView::steps, MechanismView::recurrent,
                            MechanismView::model, MechanismView::cost})
      for (const auto kind :
           {MechanismSource::Kind::random, MechanismSource::Kind::hand, MechanismSource::Kind::head}) {
        controller.view = view;
        controller.source().kind = kind;
        controller.changed_source();
        show(workspace_index("Mechanisms"), "Mechanisms", "linear", wait);
      }
  }
};

}  // namespace

TEST_CASE("an emptied text leaves no page with what it cannot draw") {
  HEADSCOPE_NEEDS_DISPLAY();
  Program p(Explore::options(1000, 700));
  const auto& results = p.app.explorer().results();
  REQUIRE(p.driver.until([&] { return results.run && p.app.settled(); }, 20'000));
  const std::string text = p.app.explorer().state().document.text;
  p.show_all(true);
  p.app.explorer().editor.set_text("");
  REQUIRE(p.driver.until([&] { return !results.run; }));
  p.show_all(false);
  CHECK_FALSE(results.run);
  p.app.explorer().editor.set_text(text);
  REQUIRE(p.driver.until([&] { return results.run && p.app.settled(); }, 20'000));
}

TEST_CASE("without a model every page says what to do") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1000, 700);
  options.example.clear();
  options.model = "/nowhere/at/all";
  Program p(options);
  p.driver.until([&] { return p.app.settled(); }, 2000);
  REQUIRE_FALSE(p.app.explorer().results().model.model);
  p.show_all(false);
  CHECK_FALSE(p.app.explorer().results().run);
}

}  // namespace headscope::empty_test
