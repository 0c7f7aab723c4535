// The Explore workspace, used as a person uses it: heads by name, tokens, temperature, masks, prompt, undo.

#include <doctest/doctest.h>

#include <filesystem>
#include <random>
#include <set>

#include "app/panels/explore_workspace.h"
#include "app/window/app.h"
#include "tests/gui/driver.h"

using namespace headscope;

namespace {

struct Explore {
  App app;
  ExploreWorkspace workspace;
  headscope::testing::Driver driver;

  explicit Explore(int width = 1600, int height = 1000)
      : app(options(width, height)), driver(app.window(), [this] { app.frame(); }) {
    app.show({[&](Ui& ui, Workbench& bench) { workspace.left(ui, bench); },
              [&](Ui& ui, Workbench& bench) { workspace.middle(ui, bench); },
              [&](Ui& ui, Workbench& bench) { workspace.right(ui, bench); },
              [&](Ui& ui, Workbench& bench) { workspace.above(ui, bench); }});
    REQUIRE(settle());
  }
  static AppOptions options(int width, int height) {
    AppOptions out;
    out.width = width, out.height = height;
    out.offscreen = out.name_items = true;
    return out;
  }
  const AppState& state() { return app.explorer().state(); }
  const Results& results() { return app.explorer().results(); }
  /// Until the run, its numbers and all pictures have come.
  bool settle() {
    int quiet = 0;
    return driver.until([&] {
      quiet = app.settled() && results().facts && results().run && results().facts->trace == results().run->trace
                  ? quiet + 1
                  : 0;
      return quiet > 8;
    });
  }
};

}  // namespace

TEST_CASE("a head is chosen by clicking its name, and undo goes back") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  const HeadRef before = e.state().document.selected;
  const HeadRef other = before == HeadRef{0, 1} ? HeadRef{1, 0} : HeadRef{0, 1};
  e.driver.click(other == HeadRef{0, 1} ? "Layer 0 Head 1" : "Layer 1 Head 0");
  CHECK(e.state().document.selected == other);
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  CHECK(e.state().document.selected == before);
  e.driver.key(ImGuiKey_Y, ImGuiMod_Ctrl);
  CHECK(e.state().document.selected == other);
}

TEST_CASE("a token is pinned by a click and let go by Escape") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  e.driver.click("token 3");
  REQUIRE(e.state().document.query);
  CHECK(*e.state().document.query == 3);
  e.driver.key(ImGuiKey_Escape);
  CHECK_FALSE(e.state().document.query);
}

TEST_CASE("a flatter softmax raises the entropy of the chosen head, live, and undo takes the edit away") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  const auto entropy = [&] {
    const HeadFacts& facts = *e.results().facts;
    std::size_t column = 0;
    while (metrics()[column].id != "entropy") ++column;
    return facts.table.value[static_cast<std::size_t>(facts.row(e.state().document.selected))][column];
  };
  const double before = entropy();
  const Item line = e.driver.item("Temperature");
  e.driver.drag(line.center(), {line.max.x, line.center().y});
  REQUIRE(e.settle());
  REQUIRE(e.state().document.edits.size() == 1);
  CHECK(temperature_of(e.state().document.edits, e.state().document.selected) > 5);
  CHECK(entropy() > before + 0.1);
  // One drag is one step, unless the machine was so slow that more than a second passed between two moves.
  for (int step = 0; step < 6 && !e.state().document.edits.empty(); ++step) e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(e.settle());
  CHECK(e.state().document.edits.empty());
  CHECK(entropy() == doctest::Approx(before));
}

TEST_CASE("a mask is chosen by its picture and reaches the matrix") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  const HeadRef head = e.state().document.selected;
  e.driver.click("mask full");
  REQUIRE(e.settle());
  CHECK(mask_of(e.state().document.edits, head) == "full");
  const AttentionMap* map = e.results().map(head);
  REQUIRE(map);
  CHECK_FALSE(map->masked(0, map->n_key() - 1));  // the first token may see the last one now
  e.driver.click("mask causal");
  REQUIRE(e.settle());
  const AttentionMap* again = e.results().map(head);
  REQUIRE(again);
  CHECK(again->masked(0, again->n_key() - 1));
  CHECK(again->weight(0, again->n_key() - 1) == 0);
}

TEST_CASE("typing traces the text anew") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  const std::size_t before = e.results().run->trace->tokens.size();
  e.driver.click("##prompt");
  e.driver.key(ImGuiKey_End, ImGuiMod_Ctrl);
  e.driver.type("ill");
  REQUIRE(e.settle());
  CHECK(e.results().run->trace->tokens.size() == before + 3);  // the bundled model reads letters
  CHECK(e.results().run->trace->text.ends_with("ill"));
}

TEST_CASE("every size and theme draws, with all columns in sight") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, {1600, 1000}, {3840, 2160}}) {
    Explore e(width, height);
    for (const char* id : {"light", "projector", "dark"}) {
      e.app.explorer().view().theme = id;
      REQUIRE(e.settle());
      CHECK(e.driver.shown("Temperature"));
      CHECK(e.driver.shown("Layer 0 Head 0"));
      CHECK(e.app.window().theme().id == id);
    }
  }
}

TEST_CASE("hundreds of random clicks and keys break nothing") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const std::set<ImGuiKey> keys{ImGuiKey_LeftArrow, ImGuiKey_RightArrow, ImGuiKey_UpArrow, ImGuiKey_DownArrow,
                                ImGuiKey_1,         ImGuiKey_2,          ImGuiKey_3,       ImGuiKey_4,
                                ImGuiKey_5,         ImGuiKey_S,          ImGuiKey_Escape,  ImGuiKey_Enter,
                                ImGuiKey_Tab,       ImGuiKey_Backspace};
  for (int i = 0; i < 300; ++i) {
    ImGuiIO& io = ImGui::GetIO();
    switch (pick(6)) {
      case 0:
      case 1:
        io.AddMousePosEvent(static_cast<float>(pick(1280)),
                            static_cast<float>(50 + pick(670)));  // below the menus: nothing may be saved
        break;
      case 2:
        io.AddMouseButtonEvent(0, true);
        e.driver.frames(1);
        io.AddMouseButtonEvent(0, false);
        break;
      case 3:
        io.AddMouseWheelEvent(0, static_cast<float>(pick(7) - 3));
        break;
      case 4: {
        const ImGuiKey key = *std::next(keys.begin(), pick(static_cast<int>(keys.size())));
        io.AddKeyEvent(key, true);
        e.driver.frames(1);
        io.AddKeyEvent(key, false);
        break;
      }
      default:
        io.AddInputCharactersUTF8(pick(2) ? "Mr" : "é世");
    }
    e.driver.frames(1);
    if (e.app.window().closing()) e.app.window().stay_open();
  }
  CHECK(e.app.window().capture().width == 1280);
}
