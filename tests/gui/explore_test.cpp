// The Explore workspace, used as a person uses it: heads by name, tokens, temperature, masks, prompt, undo.

#include "tests/gui/explore.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/support/paths.h"

namespace headscope::explore_test {

using testing::Explore;

TEST_CASE("a head is chosen by clicking its name, and undo goes back") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  const HeadId before = e.state().document.selected;
  const HeadId other = before == HeadId{0, 1} ? HeadId{1, 0} : HeadId{0, 1};
  e.driver.click(other == HeadId{0, 1} ? "Layer 0 Head 1" : "Layer 1 Head 0");
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

TEST_CASE("the badge of a head's class opens the cells that show it, and a click pins one") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  const HeadFacts& facts = *e.results().facts;
  const auto row = static_cast<std::size_t>(facts.row(e.state().document.selected));
  REQUIRE_FALSE(facts.verdicts[row].empty());
  const HeadVerdict& verdict = facts.verdicts[row].front();
  CHECK(verdict.rule->id == "induction");
  REQUIRE(verdict.evidence.size() > 1);
  const Trace& trace = *e.results().run->trace;
  const auto words = [&](const Evidence& cell) {
    return fmt::format("{} {} looks at {} {}: {:.3f}", token_label(trace, cell.query), cell.query,
                       token_label(trace, cell.key), cell.key, cell.weight);
  };
  CHECK_FALSE(e.driver.shown(words(verdict.evidence[0])));
  e.driver.click(fmt::format("{} {:.2f}", verdict.rule->title, verdict.score));
  e.driver.frames(2);
  for (const Evidence& cell : verdict.evidence) CHECK(e.driver.shown(words(cell)));
  e.driver.click(words(verdict.evidence[1]));
  CHECK(e.state().document.query == verdict.evidence[1].query);
  CHECK(e.state().document.key == verdict.evidence[1].key);
  CHECK(e.driver.shown(words(verdict.evidence[1])));  // the list stays: the next cell is one click away
  e.driver.click_at({8, 8});                          // beside it: closed
  e.driver.frames(2);
  CHECK_FALSE(e.driver.shown(words(verdict.evidence[1])));
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
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);  // one drag is one step, however slow the machine
  REQUIRE(e.settle());
  CHECK(e.state().document.edits.empty());
  CHECK(entropy() == doctest::Approx(before));
}

TEST_CASE("a mask is chosen by its picture and reaches the matrix") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  const HeadId head = e.state().document.selected;
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
      e.app.explorer().editor.view().theme = id;
      REQUIRE(e.settle());
      CHECK(e.driver.shown("Temperature"));
      CHECK(e.driver.shown("Layer 0 Head 0"));
      CHECK(e.app.window().theme().id == id);
    }
  }
}

TEST_CASE("a drag that pauses for seconds with the button held is still one step of undo") {
  HEADSCOPE_NEEDS_DISPLAY();
  double now = 100;
  AppOptions options = Explore::options(1280, 720);
  options.clock = [&now] { return now; };
  Explore e(options);
  const Item line = e.driver.item("Temperature");
  const auto undo = [&] { e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl); };
  e.driver.move_to(line.center());
  e.driver.press();
  for (int i = 1; i <= 4; ++i) {
    now += 5;
    e.driver.move_to({line.center().x + 8.f * static_cast<float>(i), line.center().y});
  }
  e.driver.release();
  const double first = temperature_of(e.state().document.edits, e.state().document.selected);
  CHECK(first > 1);
  now += 0.1;  // at once another drag: a step of its own
  e.driver.drag({line.center().x + 32, line.center().y}, {line.max.x - 4, line.center().y});
  CHECK(temperature_of(e.state().document.edits, e.state().document.selected) > first);
  undo();
  CHECK(temperature_of(e.state().document.edits, e.state().document.selected) == first);
  undo();
  CHECK(e.state().document.edits.empty());
}

TEST_CASE("the first head on screen is the one that tells most: the induction head of the example") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  CHECK(e.state().document.selected == HeadId{1, 0});
}

TEST_CASE("the prompt wraps; keys, mouse and clipboard edit it, and undo takes typing back") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  const std::string before = e.state().document.text;
  const Item field = e.driver.item("##prompt");
  e.driver.click("##prompt");
  e.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  e.driver.key(ImGuiKey_C, ImGuiMod_Ctrl);
  e.driver.key(ImGuiKey_End, ImGuiMod_Ctrl);
  for (int i = 0; i < 2; ++i) e.driver.key(ImGuiKey_V, ImGuiMod_Ctrl);
  CHECK(e.state().document.text == before + before + before);
  REQUIRE(e.settle());  // while the new run is on its way the column may need no scroll bar
  const Item grown = e.driver.item("##prompt");
  CHECK(grown.max.y - grown.min.y > field.max.y - field.min.y);  // lines are wrapped, so it is higher
  CHECK(grown.max.x == field.max.x);
  e.driver.key(ImGuiKey_Home, ImGuiMod_Ctrl);
  e.driver.type("X");
  CHECK(e.state().document.text.starts_with("X" + before));
  e.driver.double_click("##prompt");  // selects a word
  e.driver.key(ImGuiKey_Backspace);
  CHECK(e.state().document.text.size() < 1 + 3 * before.size());
  for (int i = 0; i < 8 && e.state().document.text != before; ++i) e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  CHECK(e.state().document.text == before);
  // While it has the caret, letters are text; after Escape they are keys again.
  e.driver.key(ImGuiKey_Escape);
  e.driver.key(ImGuiKey_3);
  CHECK(e.state().view.head_view == HeadView::row);
  CHECK(e.state().document.text == before);
}

TEST_CASE("of a text that is too long the window offers the first or the last part") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  const int context = e.results().run->trace->model.context;
  e.app.explorer().editor.set_text(std::string(static_cast<std::size_t>(context) + 5, 'a'));
  REQUIRE(e.driver.until([&] { return e.app.explorer().results().too_long.has_value(); }));
  CHECK_FALSE(e.app.explorer().jobs.message());
  e.driver.click("Keep last " + std::to_string(context));
  REQUIRE(e.settle());
  CHECK(static_cast<int>(e.results().run->trace->tokens.size()) == context);
  CHECK(e.results().run->trace->tokens.front().begin == 5);
  e.driver.click("Read another part");
  REQUIRE(e.driver.until([&] { return e.app.explorer().results().too_long.has_value(); }));
  e.driver.click("Keep first " + std::to_string(context));
  REQUIRE(e.settle());
  CHECK(e.results().run->trace->tokens.front().begin == 0);
}

TEST_CASE("an idle window draws nothing until something wakes it") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  Window& window = e.app.window();
  std::atomic<bool> woken{false};
  std::jthread alarm([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    woken = true;
    window.wake();
  });
  const std::int64_t before = window.frames();
  while (true) {
    window.wait();
    if (woken) break;
    e.app.frame();
  }
  // The frames that the last event still owes, and one for a tooltip's delay: not one per tick of any clock.
  CHECK(window.frames() - before <= 6);
}

TEST_CASE("an edit dragged past its neighbour changes places with it, once, down and up") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  e.app.explorer().editor.set_edits({parse_intervention("0.0: ablate zero", "test"),
                                     parse_intervention("1.0: temperature 2", "test"),
                                     parse_intervention("1.1: temperature 3", "test")});
  REQUIRE(e.settle());
  const auto order = [&] {
    std::string out;
    for (const Intervention& edit : e.state().document.edits) out += describe(edit) + "; ";
    return out;
  };
  const auto row = [&](int i) {
    const Item on = e.driver.item("edit " + std::to_string(i) + " on");
    return ImVec2{on.max.x + 40, on.center().y};
  };
  e.driver.drag(row(0), row(1), 8);
  REQUIRE(e.settle());
  CHECK(order() == "1.0: temperature 2; 0.0: ablate zero; 1.1: temperature 3; ");
  e.driver.drag(row(2), row(1), 8);
  REQUIRE(e.settle());
  CHECK(order() == "1.0: temperature 2; 1.1: temperature 3; 0.0: ablate zero; ");
}

TEST_CASE("the interface grows and shrinks by keys, and the settings hold its size") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1600, 1000);
  e.driver.key(ImGuiKey_Equal, ImGuiMod_Ctrl);
  CHECK(e.app.settings().ui_scale == doctest::Approx(1.1));
  CHECK(e.app.window().zoom() == doctest::Approx(1.1));
  e.driver.key(ImGuiKey_Minus, ImGuiMod_Ctrl);
  CHECK(e.app.settings().ui_scale == doctest::Approx(1.0));
  e.app.settings().ui_scale = 2;
  e.driver.key(ImGuiKey_0, ImGuiMod_Ctrl);
  CHECK(e.app.window().zoom() == 1);
}

TEST_CASE("threads of more tokens than the panel is high are scrolled, not cut") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  e.app.explorer().editor.set_text(
      "Mr and Mrs Quill of Fox Hythe kept bees. Now Mr and Mrs Quill of Fox Hythe sell honey.");
  REQUIRE(e.settle());
  e.driver.click("Arcs");
  REQUIRE(e.settle());
  const Item panel = e.driver.item("arcs");
  CHECK(e.driver.item("head").max.y > panel.max.y + 50);
  CHECK(e.driver.item("head").max.x <= panel.max.x);
  e.driver.hover("arcs");
  for (int i = 0; i < 40; ++i) e.driver.wheel(-5);
  e.driver.frames(2);
  CHECK(e.driver.item("head").max.y <= panel.max.y + 1);
}

}  // namespace headscope::explore_test
