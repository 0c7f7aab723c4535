#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "app/actions/action.h"
#include "app/actions/palette.h"
#include "app/actions/shortcut_words.h"
#include "core/base/words.h"
#include "tests/support/paths.h"

namespace headscope::actions_test {

namespace {
double score(std::string_view query, std::string_view text) {
  const auto match = fuzzy_match(query, text);
  return match ? match->score : -1e9;
}

struct Room {
  Explorer explorer{{1, {}}};
  Settings settings;
  UiRequests ui;
  AppContext app{explorer, settings, ui};
  double now = 0;

  void settle() {
    for (int quiet = 0; quiet < 3;) {
      const bool news = explorer.frame(now += 0.01);
      quiet = news || explorer.jobs.busy() ? 0 : quiet + 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  void open() {
    explorer.run.open_model(headscope::testing::reference("gpt2-random"));
    explorer.editor.set_ids({1, 2, 3, 1, 2});
    settle();
    REQUIRE(explorer.results().facts);
    explorer.editor.select({0, 0});
  }
  void run(const char* id) {
    const Action* action = find_action(id);
    REQUIRE_MESSAGE(action, id);
    CHECK_MESSAGE(action->is_enabled(app), id);
    action->run(app);
  }
  const Document& document() const { return explorer.state().document; }
};
}  // namespace

TEST_CASE("fuzzy search finds letters in order and says where") {
  CHECK_FALSE(fuzzy_match("xyz", "Layer 5 Head 1"));
  CHECK_FALSE(fuzzy_match("h5", "Layer 5 Head 1"));
  const auto match = fuzzy_match("l5h1", "Layer 5 Head 1");
  REQUIRE(match);
  CHECK(match->positions == std::vector<std::size_t>{0, 6, 8, 13});
  CHECK(fuzzy_match("", "anything")->positions.empty());
  CHECK(fuzzy_match("L5 H1", "layer 5 head 1")->positions == match->positions);
  // The run of letters wins over the first ones that come along.
  CHECK(fuzzy_match("scale", "Show all: scale")->positions == std::vector<std::size_t>{10, 11, 12, 13, 14});
}

TEST_CASE("fuzzy search likes word starts, runs and short texts") {
  CHECK(score("l5h1", "Layer 5 Head 1") > score("l5h1", "Layer 15 Head 1"));
  CHECK(score("l5h1", "Layer 5 Head 1") > score("l5h1", "Layer 5 Head 11"));
  CHECK(score("log", "Logarithmic scale") > score("log", "Laser on glass"));
  CHECK(score("theme", "Dark theme") > score("theme", "Take the other metric"));
  CHECK(score("os", "Open session…") > score("os", "Close"));
}

TEST_CASE("fuzzy search is bounded for long texts and queries") {
  const std::string text(100000, 'a');
  CHECK(fuzzy_match(std::string(1000, 'a'), text)->positions.size() == 64);
  CHECK_FALSE(fuzzy_match("b", text));
}

TEST_CASE("every action has an id and a title of its own, a known group, and keys that no other has") {
  std::set<std::string> ids, titles;
  std::vector<Shortcut> keys;
  for (const Action& action : actions()) {
    CAPTURE(action.id);
    CHECK(ids.insert(action.id).second);
    CHECK(titles.insert(action.title).second);
    CHECK(action.run);
    CHECK(std::set<std::string>{"File", "Edit", "Go", "View", "Help"}.contains(action.group));
    const auto parsed = parse_shortcuts(action.shortcut);
    CHECK(parsed.empty() == action.shortcut.empty());
    for (const Shortcut& key : parsed) {
      CHECK(std::ranges::find(keys, key) == keys.end());
      keys.push_back(key);
      CHECK(action_for(key) == &action);
    }
  }
  CHECK(find_action("edit.undo")->shortcut == "Ctrl+Z");
  CHECK(find_action("nothing") == nullptr);
  CHECK(action_for({.key = "F9"}) == nullptr);
}

TEST_CASE("shortcuts are read with what must be held") {
  const auto both = parse_shortcuts("Ctrl+Shift+Z or Ctrl+Y");
  REQUIRE(both.size() == 2);
  CHECK(both[0] == Shortcut{true, true, false, "Z"});
  CHECK(both[1] == Shortcut{true, false, false, "Y"});
  CHECK(parse_shortcuts("?")[0] == Shortcut{false, false, false, "?"});
  CHECK(parse_shortcuts("F12").size() == 1);
  for (const char* bad : {"", "F13", "F0", "Ctrl+", "Hyper+Z", "ctrl+z", "Ctrl+ZZ"})
    CHECK(parse_shortcuts(bad).empty());
  CHECK(parse_shortcuts("Ctrl+Z")[0].while_typing());
  CHECK(parse_shortcuts("Escape")[0].while_typing());
  CHECK_FALSE(parse_shortcuts("S")[0].while_typing());
  CHECK_FALSE(parse_shortcuts("Left")[0].while_typing());
}

TEST_CASE("actions that need something are off until it is there") {
  Room room;
  for (const char* id : {"edit.undo", "go.head.next", "go.unpin", "edit.clear", "atlas.color.class"})
    CHECK_FALSE_MESSAGE(find_action(id)->is_enabled(room.app), id);
  // Curves of training and mechanisms on random numbers need no text.
  CHECK(find_action("file.export")->is_enabled(room.app));
  room.open();
  room.explorer.editor.set_ids({1, 2, 3});
  for (const char* id : {"edit.undo", "go.head.next", "file.export", "atlas.color.class", "atlas.color.entropy"})
    CHECK_MESSAGE(find_action(id)->is_enabled(room.app), id);
  CHECK_FALSE(find_action("atlas.color.effect")->is_enabled(room.app));
}

TEST_CASE("the arrow keys walk over the heads, round the ends") {
  Room room;
  room.open();
  room.run("go.head.next");
  CHECK(room.document().selected == HeadId{0, 1});
  room.run("go.layer.next");
  CHECK(room.document().selected == HeadId{1, 1});
  room.run("go.layer.next");
  CHECK(room.document().selected == HeadId{0, 1});
  room.run("go.head.previous");
  room.run("go.head.previous");
  CHECK(room.document().selected == HeadId{0, 3});
}

TEST_CASE("brackets pin tokens, and in the row its keys, starting from the strongest") {
  Room room;
  room.open();
  room.run("go.query.next");
  CHECK(room.document().query == 0);
  room.run("go.query.previous");
  CHECK(room.document().query == 0);
  for (int i = 0; i < 3; ++i) room.run("go.query.next");
  CHECK(room.document().query == 3);
  room.run("go.key.next");
  CHECK(room.document().key == room.explorer.results().map({0, 0})->stats().max_key[3]);
  room.run("go.unpin");
  CHECK_FALSE(room.document().query);
  CHECK_FALSE(room.document().key);
  room.run("go.query.previous");
  CHECK(room.document().query == 4);
}

TEST_CASE("choices show which one is on; edits can be switched off and on together") {
  Room room;
  room.open();
  CHECK(find_action("view.scale.linear")->is_checked(room.app));
  room.run("view.scale.log");
  CHECK(find_action("view.scale.log")->is_checked(room.app));
  CHECK_FALSE(find_action("view.scale.linear")->is_checked(room.app));
  room.run("view.scale.next");
  CHECK(room.explorer.editor.view().scale == Scale::per_row);
  room.run("view.panel.left");
  CHECK_FALSE(room.explorer.editor.view().left_open);
  room.run("view.theme.light");
  CHECK(room.explorer.editor.view().theme == "light");
  CHECK(room.settings.theme == "light");
  room.run("atlas.color.entropy");
  CHECK(room.explorer.editor.view().atlas.coloring == "entropy");

  room.explorer.editor.set_temperature(2);
  room.run("edit.toggle");
  CHECK_FALSE(room.document().edits.at(0).enabled);
  room.run("edit.toggle");
  CHECK(room.document().edits.at(0).enabled);
  room.run("edit.clear");
  CHECK(room.document().edits.empty());
  room.run("edit.undo");
  CHECK(room.document().edits.size() == 1);
}

TEST_CASE("the palette finds heads, tokens, models, masks and actions, and does what was found") {
  Room room;
  room.settings.remember_model("/models/gpt2-small");
  room.open();
  const auto items = palette_items(room.app);
  const auto best = [&](const char* query) {
    const auto hits = search_palette(items, query);
    REQUIRE_MESSAGE(!hits.empty(), query);
    return items[hits.front().item];
  };
  CHECK(best("l1h2").title == "Layer 1 Head 2");
  best("layer 1 head 2").run(room.app);
  CHECK(room.document().selected == HeadId{1, 2});
  CHECK(best("tok 3").title.starts_with("Token 3 "));
  best("token 3").run(room.app);
  CHECK(room.document().query == 3);
  CHECK(best("gpt2 small").group == "Model");
  CHECK(best("log scale").title == "Logarithmic scale");
  best("mask window").run(room.app);
  CHECK(mask_of(room.document().edits, {1, 2}) == "window 4");
  best("ctrl+o").run(room.app);
  CHECK(room.ui.dialog == UiRequests::Dialog::open_model);
  CHECK(search_palette(items, "", 7).size() == 7);
  CHECK(search_palette(items, "", 7)[6].item == 6);
  CHECK(search_palette(items, "qqqqqq").empty());
}

TEST_CASE("words name better than scattered letters: whole ones before begun ones, titles before further words") {
  CHECK(word_match("masks", "Masks", "") == 1.5);
  CHECK(word_match("MASK", "Masks", "") == 1.5);                     // case, and the last s
  CHECK(word_match("self attention", "Self-Attention", "") == 1.5);  // hyphens
  CHECK(word_match("gradient × input", "", "gradient x input") ==
        0.0 + word_match("gradient input", "", "gradient x input"));
  CHECK(word_match("causal mask", "Masks", "causal") > 0);
  CHECK(word_match("causal mask", "Masks", "") == 0);  // every word has to be there
  CHECK(word_match("mac", "Titans", "MAC") > word_match("mac", "Machine", ""));
  CHECK(word_match("titans", "Titans", "") > word_match("titans", "Memory", "titans"));
  CHECK(word_match("layer 1 head 2", "Layer 1 Head 2", "") > word_match("layer 1 head 2", "Layer 2 Head 1", ""));
  CHECK(word_match("", "Masks", "") == 0);
  const std::vector<PaletteItem> items{{"Make a lot of mass", "", "", {}},
                                       {"Titans", "", "", {}, "MAL memory as layer"}};
  CHECK(search_palette(items, "mal").front().item == 1);
}

TEST_CASE("shortcuts are shown with the names of keys in the language in use, and parsed in English") {
  CHECK(shown_shortcut("Ctrl+Shift+Z or Ctrl+Y") == "Ctrl+Shift+Z or Ctrl+Y");
  use_words(WordTable(WordTable::Entries{{"Ctrl", "Strg"}, {"Shift", "Umschalt"}, {"Left", "Links"}, {"or", "oder"}}),
            "de");
  CHECK(shown_shortcut("Ctrl+Shift+Z or Ctrl+Y") == "Strg+Umschalt+Z oder Strg+Y");
  CHECK(shown_shortcut("Shift+Left") == "Umschalt+Links");
  CHECK(shown_shortcut("Ctrl++") == "Strg++");
  CHECK(shown_shortcut("?") == "?");
  CHECK(shown_shortcut("") == "");
  CHECK(parse_shortcuts(find_action("edit.redo")->shortcut).size() == 2);
  use_words({});
}

}  // namespace headscope::actions_test
