// A map of thousands of tokens: pooled where it is seen whole, exact where it is zoomed into; from strong cell to
// strong cell, from one place of a text to the next where it stands again, along a row.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/trace/strong_cells.h"
#include "core/trace/token_search.h"
#include "tests/gui/explore.h"
#include "tests/support/model_folder.h"
#include "tests/support/paths.h"

namespace headscope::long_map_test {

using testing::Explore;

namespace {

constexpr int context = 4096;

AppOptions long_text(int width, int height, int tokens) {
  const auto folder = testing::scratch_dir("long-map");
  testing::write_random_gpt2(folder, 1, 2, 32, context);
  AppOptions options = Explore::options(width, height);
  options.example.clear();
  options.model = folder;
  std::string text;
  for (int i = 0; static_cast<int>(text.size()) < tokens; ++i)
    text += i % 9 == 4 ? "Anna sold pies " : fmt::format("and {} more ", i * i % 97);
  text.resize(static_cast<std::size_t>(tokens));
  options.text = text;
  return options;
}

const AttentionMap& map(Explore& e) {
  return *e.results().map(e.state().document.selected);
}

/// Positions of the labels of an axis that are written, ascending.
std::vector<Index> labelled(Explore& e, const std::string& axis) {
  std::vector<Index> out;
  for (const Item& item : e.items("head/label." + axis + "."))
    out.push_back(std::atoi(item.label.substr(item.label.rfind('.') + 1).c_str()));
  std::ranges::sort(out);
  return out;
}

bool in_sight(const std::vector<Index>& labels, Index position) {
  return std::ranges::binary_search(labels, position);
}

}  // namespace

TEST_CASE("a long map seen whole has cells of 2, 4, 8 … tokens, each in the colour of the largest weight in it") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height, tokens] : {std::tuple{1280, 720, 3001}, {1600, 1000, 1700}}) {
    CAPTURE(tokens);
    Explore e(long_text(width, height, tokens));
    const Index n = map(e).n_query();
    REQUIRE(n == tokens);
    const Item on = e.driver.item("head/map");
    CHECK(on.max.x <= static_cast<float>(width - 320));
    e.driver.move_to({5, 5});
    const Image shown = e.app.window().capture();
    Index bin = 1;  // the smallest whose cells are a pixel wide
    while (static_cast<float>((n + bin - 1) / bin) > on.max.x - on.min.x + 1) bin *= 2;
    const Index cells = (n + bin - 1) / bin;
    const auto side = static_cast<double>(on.max.x - on.min.x) / static_cast<double>(cells);
    CHECK(side >= 1);
    CHECK(side < 2.1);
    int checked = 0, wrong = 0;
    for (Index row = 2; row < cells; row += 7)
      for (Index column = 0; column <= row; column += 5) {
        const auto best = map(e).strongest({row * bin, std::min(n, (row + 1) * bin)},
                                           {column * bin, std::min(n, (column + 1) * bin)});
        REQUIRE(best);
        const Color wanted = e.app.window().theme().sequential->at(static_cast<double>(best->weight));
        const Color seen =
            shown.at(static_cast<int>(on.min.x + (static_cast<float>(column) + 0.5f) * static_cast<float>(side)),
                     static_cast<int>(on.min.y + (static_cast<float>(row) + 0.5f) * static_cast<float>(side)));
        ++checked;
        wrong += std::abs(seen.r - wanted.r) > 1 || std::abs(seen.g - wanted.g) > 1 || std::abs(seen.b - wanted.b) > 1;
      }
    CHECK(checked > 200);
    CHECK(wrong == 0);
  }
}

TEST_CASE("N goes through the strongest cells in their order, each pinned, in sight, with its number and its rank") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, {1600, 1000}}) {
    CAPTURE(width);
    Explore e(long_text(width, height, 2000));
    StrongCells cells(map(e));
    const Trace& trace = *e.results().run->trace;
    const auto check = [&](Index rank, const std::string& words) {
      REQUIRE(e.settle());
      const auto cell = cells.at(rank);
      REQUIRE(cell);
      CHECK(e.state().document.query == cell->query);
      CHECK(e.state().document.key == cell->key);
      CHECK(in_sight(labelled(e, "query"), cell->query));
      CHECK(in_sight(labelled(e, "key"), cell->key));
      if (std::abs(cell->weight) >= 0.005f)
        CHECK(e.driver.shown(fmt::format("head/value.{}.{}", cell->query, cell->key)));
      CHECK(e.driver.shown(words + ": " + looks_at(trace, cell->query, cell->key, static_cast<double>(cell->weight))));
    };
    e.driver.move_to({5, 5});
    e.driver.key(ImGuiKey_N);
    check(0, "strongest cell");
    e.driver.key(ImGuiKey_N);
    check(1, "2nd strongest cell");
    e.driver.click("next strong cell");
    e.driver.move_to({5, 5});
    check(2, "3rd strongest cell");
    e.driver.key(ImGuiKey_N, ImGuiMod_Shift);
    check(1, "2nd strongest cell");
    e.driver.click("previous strong cell");
    e.driver.move_to({5, 5});
    check(0, "strongest cell");
    // Another head begins anew.
    e.driver.key(ImGuiKey_RightArrow);
    REQUIRE(e.settle());
    cells = StrongCells(map(e));
    e.driver.key(ImGuiKey_N);
    check(0, "strongest cell");

    // In one row.
    e.driver.key(ImGuiKey_Escape);
    e.driver.click("token 3");
    e.driver.key(ImGuiKey_F);
    REQUIRE(e.state().view.follow_row);
    cells = StrongCells(map(e), 3);
    e.driver.move_to({5, 5});
    e.driver.key(ImGuiKey_N);
    check(0, "strongest cell of the row");
    e.driver.key(ImGuiKey_N);
    check(1, "2nd strongest cell of the row");
    for (int i = 0; i < 4; ++i) e.driver.key(ImGuiKey_N);  // the row sees four keys
    REQUIRE(e.settle());
    CHECK(e.state().document.query == 3);
  }
}

TEST_CASE("a word is found on the map wherever it stands: as a row, and in the row that is followed as a key") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(long_text(1280, 720, 2000));
  const std::vector<Index> places = find_tokens(e.results().run->trace->tokens, "anna");
  REQUIRE(places.size() > 5);
  e.driver.key(ImGuiKey_F, ImGuiMod_Ctrl);
  e.driver.frames(3);
  e.driver.type("anna");
  for (const std::size_t at : {0, 1, 2}) {
    e.driver.key(ImGuiKey_Enter);
    REQUIRE(e.settle());
    CHECK(e.state().document.query == places[at]);
    CHECK_FALSE(e.state().document.key);
    CHECK(in_sight(labelled(e, "query"), places[at]));
    CHECK(in_sight(labelled(e, "key"), places[at]));
    CHECK(e.driver.shown(fmt::format("matches {} of {}", at + 1, places.size())));
  }
  e.driver.key(ImGuiKey_Enter, ImGuiMod_Shift);
  REQUIRE(e.settle());
  CHECK(e.state().document.query == places[1]);
  e.driver.click("previous match");
  e.driver.click("previous match");
  REQUIRE(e.settle());
  CHECK(e.state().document.query == places.back());  // round the end
  e.driver.click("pinned row");
  e.driver.click("next match");
  REQUIRE(e.settle());
  CHECK(e.state().document.query == places.back());
  CHECK(e.state().document.key == places[0]);
  CHECK(in_sight(labelled(e, "query"), places.back()));
  CHECK(in_sight(labelled(e, "key"), places[0]));
  e.driver.click("find on the map");
  e.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  e.driver.type("nobody");
  e.driver.frames(3);
  CHECK(e.driver.shown("matches none"));
  e.driver.key(ImGuiKey_Enter);
  REQUIRE(e.settle());
  CHECK(e.state().document.key == places[0]);
}

TEST_CASE("the row that is followed stays in sight while the map is moved, and keys walk along it") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(long_text(1280, 720, 2000));
  e.driver.key(ImGuiKey_N);
  REQUIRE(e.settle());
  e.app.explorer().editor.pin(1200, 700);
  REQUIRE(e.settle());
  const Index row = *e.state().document.query, key = *e.state().document.key;
  const Item on = e.driver.item("head/map");
  const ImVec2 middle = on.center();
  const auto away = [&] {
    for (int i = 0; i < 4; ++i) e.driver.drag(middle, {middle.x - 120, middle.y + (row > 1000 ? 150.f : -150.f)}, 4);
    REQUIRE(e.settle());
  };
  e.driver.key(ImGuiKey_F);
  away();
  CHECK(in_sight(labelled(e, "query"), row));
  CHECK_FALSE(in_sight(labelled(e, "key"), key));
  // The pinned key comes back into sight when keys walk from it.
  e.driver.key(ImGuiKey_LeftArrow, ImGuiMod_Shift);
  REQUIRE(e.settle());
  CHECK(e.state().document.key == std::max<Index>(key - 1, 0));
  CHECK(in_sight(labelled(e, "key"), *e.state().document.key));
  e.driver.key(ImGuiKey_F);
  away();
  CHECK_FALSE(in_sight(labelled(e, "query"), row));
}

TEST_CASE("a map is never blank while it is zoomed and moved, and a cell keeps what it says at every zoom") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(long_text(1280, 720, 4000));
  const auto best = StrongCells(map(e)).at(0);
  REQUIRE(best);
  const Item on = e.driver.item("head/map");
  const double n = static_cast<double>(map(e).n_query());
  const ImVec2 at{on.min.x + static_cast<float>((static_cast<double>(best->key) + 0.5) / n) * (on.max.x - on.min.x),
                  on.min.y + static_cast<float>((static_cast<double>(best->query) + 0.5) / n) * (on.max.y - on.min.y)};
  e.driver.move_to(at);
  const Color wanted = e.app.window().theme().sequential->at(static_cast<double>(best->weight));
  for (int step = 0; step < 34; ++step) {
    e.driver.wheel(1);
    CHECK(e.driver.shown("head/map"));
    REQUIRE(e.settle());
    REQUIRE(e.driver.shown("head/minimap"));
    if (step % 6 != 5) continue;
    // Within a cell or two of the pointer is the strong one, in its colour.
    e.driver.move_to({5, 5});  // the cross would cover it
    const Image shown = e.app.window().capture();
    e.driver.move_to(at);
    bool found = false;
    for (int y = static_cast<int>(on.min.y); y < static_cast<int>(on.max.y) && !found; ++y)
      for (int x = static_cast<int>(on.min.x); x < static_cast<int>(on.max.x) && !found; ++x) {
        const Color c = shown.at(x, y);
        found = std::abs(c.r - wanted.r) <= 1 && std::abs(c.g - wanted.g) <= 1 && std::abs(c.b - wanted.b) <= 1;
      }
    CHECK(found);
  }
  const auto rows = labelled(e, "query");
  REQUIRE_FALSE(rows.empty());
  CHECK(rows.back() - rows.front() < 40);
}

}  // namespace headscope::long_map_test
