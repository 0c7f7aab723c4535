// What the workspaces say while a table of another language is in use, and that their controls, settings and pages go
// on answering to English.

#include "app/all_workspaces.h"
#include "core/base/words.h"
#include "tests/gui/explore.h"

namespace headscope::workspace_words_test {

using testing::Explore;

namespace {

struct German {
  German() {
    use_words(WordTable(WordTable::Entries{
        {"Effective tokens", "Wirksame Tokens"},
        {"Heads", "Köpfe"},
        {"Loss on this text", "Verlust auf diesem Text"},
        {"Multiply-adds", "Produkte und Summen"},
        {"No corpus has been read", "Noch kein Korpus gelesen"},
        {"No model is being trained", "Kein Modell wird trainiert"},
        {"Loss as it is", "Verlust, wie er ist"},
        {"texts past the trained length", "Texte über die gelernte Länge hinaus"},
        {"total variation {:.3f}", "Variation {:.3f} (total)"},
        {"Entropy of the model", "Entropie des Modells"},
        {"taken out", "herausgenommen"},
        {"Greedy", "Gierig"},
    }));
  }
  ~German() { use_words(WordTable()); }
};

}  // namespace

TEST_CASE("every workspace is said by the table in use, and its controls keep their English names") {
  HEADSCOPE_NEEDS_DISPLAY();
  App app(Explore::options(1600, 1000));
  const German german;  // in place of what the program speaks by its settings
  AllWorkspaces workspaces(app);
  headscope::testing::Driver driver(app.window(), [&] { app.frame(); });
  const auto& results = app.explorer().results();
  const auto settle = [&] {
    int quiet = 0;
    return driver.until([&] { return (quiet = app.settled() && results.facts ? quiet + 1 : 0) > 8; }, 20'000);
  };
  REQUIRE(settle());
  const auto show = [&](int workspace) {
    app.requests().workspace = workspace;
    driver.frames(3);
    return settle();
  };

  CHECK(driver.shown("Verlust auf diesem Text"));
  CHECK_FALSE(driver.shown("Loss on this text"));
  CHECK(driver.shown("Wirksame Tokens"));  // the name of a metric
  driver.click("Heads");                   // drawn as Köpfe
  REQUIRE(settle());
  CHECK(app.explorer().state().view.head_view == HeadView::heads);
  driver.click("Map");
  driver.key(ImGuiKey_X);
  REQUIRE(settle());
  CHECK(driver.shown("herausgenommen"));
  CHECK(app.explorer().state().document.edits.size() == 1);

  REQUIRE(show(workspace_index("Compare")));
  const auto& items = app.window().items().items();
  CHECK(std::ranges::any_of(items, [](const Item& item) {
    return item.label.starts_with("Variation 0.") && item.label.ends_with(" (total)");
  }));

  REQUIRE(show(workspace_index("Generate")));
  CHECK(driver.shown("Entropie des Modells"));
  driver.click("Greedy");
  driver.frames(2);
  CHECK(workspaces.generation.settings().greedy);

  app.settings().pages["Positions"] = "rope";
  REQUIRE(show(workspace_index("Positions")));
  CHECK(driver.shown("Verlust, wie er ist"));
  CHECK(driver.shown("Texte über die gelernte Länge hinaus"));
  CHECK(driver.shown("texts past the trained length"));  // by which it is found, and kept

  REQUIRE(show(workspace_index("Mechanisms")));
  CHECK(driver.shown("Produkte und Summen"));
  REQUIRE(show(workspace_index("Corpus")));
  CHECK(driver.shown("Noch kein Korpus gelesen"));
  REQUIRE(show(workspace_index("Train")));
  CHECK(driver.shown("Kein Modell wird trainiert"));
}

}  // namespace headscope::workspace_words_test
