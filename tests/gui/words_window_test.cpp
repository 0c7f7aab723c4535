// Words in place of tokens, used as a person uses them.

#include <algorithm>
#include <filesystem>

#include "app/state/settings.h"
#include "core/base/file.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"

namespace headscope::words_window_test {

using testing::Explore;

TEST_CASE(
    "words take the place of tokens in the strip, the map and the row, by key and by button, and undo lets them be") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  e.driver.click("Layer 1 Head 0");
  REQUIRE(e.settle());
  const WordGroups words = e.results().run->words;
  const auto tokens = static_cast<Index>(e.results().run->trace->tokens.size());
  REQUIRE(words.words() < tokens);
  const auto last = [](Index count) { return "token " + std::to_string(count - 1); };
  CHECK(e.driver.shown(last(tokens)));
  const Document before = e.state().document;

  e.driver.key(ImGuiKey_W);
  REQUIRE(e.settle());
  CHECK(e.state().view.text_unit == TextUnit::words);
  CHECK(e.state().document == before);  // a way of looking, not a step of the history
  CHECK(e.driver.shown(last(words.words())));
  CHECK_FALSE(e.driver.shown(last(tokens)));
  CHECK(e.driver.shown("head/label.query." + std::to_string(words.words() - 1)));

  // A word pins its last token, of which the row is drawn as that word's.
  e.driver.click("token 4");
  REQUIRE(e.settle());
  CHECK(e.state().document.query == words.tokens_of(4).end - 1);
  for (const HeadView view : {HeadView::arcs, HeadView::row, HeadView::steps, HeadView::qk, HeadView::map}) {
    e.app.explorer().editor.view().head_view = view;
    e.app.explorer().editor.view().first_token = FirstToken::renormalize;
    REQUIRE(e.settle());
    CHECK_FALSE(e.app.explorer().jobs.message());
  }
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  CHECK(e.state().view.text_unit == TextUnit::words);

  const auto file = headscope::testing::scratch_dir("words-gui") / "map.csv";
  ExportOptions options;
  options.file = file;
  export_view(e.app.explorer().jobs, e.app.explorer().state(), e.app.explorer().results(), options);
  REQUIRE(e.settle());
  const std::string csv = read_file(file);
  CHECK(std::ranges::count(csv, '\n') == words.words() + 1);

  e.driver.click("tokens");
  REQUIRE(e.settle());
  CHECK(e.state().view.text_unit == TextUnit::tokens);
  CHECK(e.driver.shown(last(tokens)));
}

TEST_CASE("the window remembers that it showed words") {
  HEADSCOPE_NEEDS_DISPLAY();
  const auto file = headscope::testing::scratch_dir("words-settings") / "settings.json";
  Settings settings;
  settings.words = true;
  save_settings(settings, file);
  AppOptions options = Explore::options(1280, 720);
  options.settings = file;
  Explore e(options);
  CHECK(e.state().view.text_unit == TextUnit::words);
}

}  // namespace headscope::words_window_test
