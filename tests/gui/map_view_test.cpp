// The map of a head under mouse and wheel: cells with numbers, labels that can be read, zoom, the words below it, and
// one token in all heads.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "core/base/file.h"
#include "core/edits/weight_edit.h"
#include "core/trace/query_rows.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"
#include "viz/scene/map_cells.h"

namespace headscope::map_view_test {

using testing::Explore;

namespace {

void write(Explore& e, const std::string& text) {
  e.app.explorer().editor.set_text(text);
  REQUIRE(e.settle());
}

std::string letters(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += static_cast<char>('a' + (i * 7) % 26);
  return text;
}

Index tokens(Explore& e) {
  return static_cast<Index>(e.results().run->trace->tokens.size());
}

const AttentionMap& map(Explore& e) {
  return *e.results().map(e.state().document.selected);
}

/// Middle of a cell of the map or of the part of it that is shown: first row and key, rows and keys in sight.
ImVec2 cell(Explore& e, Index query, Index key, MapRegion shown) {
  const Item on = e.driver.item("head/map");
  const float w = (on.max.x - on.min.x) / static_cast<float>(shown.n_key),
              h = (on.max.y - on.min.y) / static_cast<float>(shown.n_query);
  return {on.min.x + (static_cast<float>(key - shown.key) + 0.5f) * w,
          on.min.y + (static_cast<float>(query - shown.query) + 0.5f) * h};
}
ImVec2 cell(Explore& e, Index query, Index key) {
  return cell(e, query, key, {0, tokens(e), 0, tokens(e)});
}

/// Positions of the labels of an axis that are written, ascending.
std::vector<Index> labelled(Explore& e, const std::string& axis) {
  std::vector<Index> out;
  for (const Item& item : e.items("head/label." + axis + "."))
    out.push_back(std::atoi(item.label.substr(item.label.rfind('.') + 1).c_str()));
  std::ranges::sort(out);
  return out;
}

}  // namespace

TEST_CASE("a cell with a number in it answers in its middle: pointed at, pinned, dragged, painted") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height, n] : {std::tuple{1280, 720, 3}, {1280, 720, 6}, {1600, 1000, 9}, {3000, 1800, 20}}) {
    CAPTURE(width);
    CAPTURE(n);
    Explore e(width, height);
    write(e, letters(n));
    e.driver.click("Layer 1 Head 2");  // spreads its weight: numbers everywhere
    REQUIRE(e.settle());
    const auto numbers = e.items("head/value.");
    REQUIRE(numbers.size() > 3);
    for (const Item& number : numbers) {
      Index query = 0, key = 0;
      REQUIRE(std::sscanf(number.label.c_str(), "head/value.%td.%td", &query, &key) == 2);
      e.driver.move_to(number.center());
      CHECK(e.state().hover.query == query);
      CHECK(e.state().hover.key == key);
      CHECK(std::abs(number.center().x - cell(e, query, key).x) < 2);
    }
    const Index query = tokens(e) - 1, key = 1;
    const Item middle = e.driver.item(fmt::format("head/value.{}.{}", query, key));
    e.driver.click_at(middle.center());
    CHECK(e.state().document.query == query);
    CHECK(e.state().document.key == key);

    const float before = map(e).weight(query, key);
    e.driver.key(ImGuiKey_E);
    e.driver.drag(middle.center(), {middle.center().x, middle.center().y - 60}, 5);
    REQUIRE(e.settle());
    REQUIRE(e.state().document.edits.size() == 1);
    const auto* set = e.state().document.edits[0].action.as<SetWeight>();
    REQUIRE(set);
    CHECK(set->query == query);
    CHECK(set->key == key);
    CHECK(map(e).weight(query, key) > before + 0.2f);
    e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
    REQUIRE(e.settle());

    e.driver.key(ImGuiKey_M);
    e.driver.click_at(e.driver.item(fmt::format("head/value.{}.{}", query, key)).center());
    REQUIRE(e.settle());
    CHECK(map(e).masked(query, key));
    CHECK(map(e).weight(query, key) == 0);
  }
}

TEST_CASE("labels of a map are never smaller than 11 pixels: there are fewer, and the pinned ones are among them") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, {1600, 1000}}) {
    Explore e(width, height);
    for (const int n : {30, 63, 99, 200}) {
      CAPTURE(width);
      CAPTURE(n);
      write(e, letters(n));
      const Item on = e.driver.item("head/map");
      CHECK(on.min.x >= 340);
      CHECK(on.max.x <= static_cast<float>(width - 320));
      const auto rows = e.items("head/label.query.");
      REQUIRE(rows.size() > 3);
      float above = -1e6f;
      for (const Item& label : rows) {
        CHECK(label.max.y - label.min.y >= 13.5f);  // the line of a face of 11 pixels
        CHECK((label.min.y + label.max.y) / 2 >= above + 10.5f);
        above = (label.min.y + label.max.y) / 2;
      }
      const auto named = labelled(e, "query");
      if (n >= 63) CHECK(static_cast<Index>(named.size()) < tokens(e));
      // A row and a column between the named ones are named once they are pinned, …
      Index row = tokens(e) - 3;
      while (std::ranges::binary_search(named, row)) --row;
      Index column = 2;
      const auto keys = labelled(e, "key");
      while (column < row && std::ranges::binary_search(keys, column)) ++column;
      if (n < 63) continue;
      // … and while they are pointed at.
      e.driver.move_to(cell(e, row, column));
      REQUIRE(e.state().hover.query == row);
      const std::string query_name = token_label(*e.results().run->trace, row),
                        key_name = token_label(*e.results().run->trace, column);
      CHECK(e.items(fmt::format("pointed query {} {}", query_name, row)).size() == 1);
      CHECK(e.items(fmt::format("pointed key {} {}", column, key_name)).size() == 1);
      const Item pointed = e.driver.item(fmt::format("pointed query {} {}", query_name, row));
      CHECK(std::abs(pointed.center().y - cell(e, row, column).y) < 5);
      CHECK(pointed.max.x <= on.min.x);
      e.driver.click_at(cell(e, row, column));
      REQUIRE(e.settle());
      CHECK(std::ranges::binary_search(labelled(e, "query"), row));
      CHECK(std::ranges::binary_search(labelled(e, "key"), column));
      const Item after = e.driver.item("head/map");  // nothing has moved
      CHECK(after.min.x == on.min.x);
      CHECK(after.min.y == on.min.y);
      CHECK(after.max.x == on.max.x);
      e.driver.key(ImGuiKey_Escape);
    }
  }
}

TEST_CASE("the wheel shows a part of the map with its axes, numbers and a small map; another text shows all again") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  e.driver.click("Layer 1 Head 2");
  write(e, letters(63));
  const Index n = tokens(e), query = 40, key = 20;
  CHECK_FALSE(e.driver.shown("head/minimap"));
  CHECK(e.items("head/value.").empty());
  const Item whole = e.driver.item("head/map");
  e.driver.move_to(cell(e, query, key));
  for (int i = 0; i < 12; ++i) {
    e.driver.wheel(1);
    REQUIRE(e.settle());
    CHECK(e.state().hover.query == query);  // what is under the pointer stays there
    CHECK(e.state().hover.key == key);
    const Item now = e.driver.item("head/map");
    CHECK(std::abs(now.min.x - whole.min.x) < 1.5f);
    CHECK(std::abs(now.max.y - whole.max.y) < 1.5f);
  }
  CHECK(e.driver.shown("head/minimap"));
  const auto rows = labelled(e, "query"), keys = labelled(e, "key");
  REQUIRE(rows.size() >= 4);
  CHECK(rows.size() == keys.size());
  CHECK(rows.back() - rows.front() + 1 == static_cast<Index>(rows.size()));  // every one is named
  CHECK(rows.front() <= query);
  CHECK(rows.back() >= query);
  CHECK_FALSE(e.items("head/value.").empty());
  const Item part = e.driver.item("head/map");
  CHECK(part.min.x >= 340);
  CHECK(part.max.x <= 960);
  CHECK(part.max.y <= whole.max.y + 40);
  // A number stands in its cell, and says what the map says.
  const MapRegion shown{rows.front(), static_cast<Index>(rows.size()), keys.front(), static_cast<Index>(keys.size())};
  const Item number = e.driver.item(fmt::format("head/value.{}.{}", query, key));
  CHECK(std::abs(number.center().x - cell(e, query, key, shown).x) < 2);
  CHECK(std::abs(number.center().y - cell(e, query, key, shown).y) < 3);
  e.driver.click_at(number.center());
  CHECK(e.state().document.query == query);
  CHECK(e.state().document.key == key);

  // Tools reach the cell that is seen.
  e.driver.key(ImGuiKey_M);
  e.driver.click_at(cell(e, query, key, shown));
  REQUIRE(e.settle());
  CHECK(map(e).masked(query, key));
  CHECK(mask_of(e.state().document.edits, {1, 2}) == fmt::format("causal & not cells {}:{}", query, key));
  CHECK(labelled(e, "query") == rows);  // an edit keeps the part
  e.driver.key(ImGuiKey_V);

  // Dragging moves it; so does the small map.
  const ImVec2 at = cell(e, query, key, shown);
  const float step = (part.max.y - part.min.y) / static_cast<float>(shown.n_query);
  e.driver.drag(at, {at.x, at.y - 3 * step}, 6);
  REQUIRE(e.settle());
  CHECK(labelled(e, "query").front() == rows.front() + 3);
  const Item small = e.driver.item("head/minimap");
  e.driver.click_at({small.min.x + 1, small.min.y + 1});
  REQUIRE(e.settle());
  CHECK(labelled(e, "query").front() == 0);
  CHECK(labelled(e, "key").front() == 0);
  // A row that is pinned outside comes into it.
  e.driver.click("token 50");
  REQUIRE(e.settle());
  CHECK(std::ranges::binary_search(labelled(e, "query"), 50));

  e.driver.click("Whole map");
  REQUIRE(e.settle());
  CHECK_FALSE(e.driver.shown("head/minimap"));
  e.driver.move_to(cell(e, query, key));
  e.driver.wheel(4);
  REQUIRE(e.settle());
  CHECK(e.driver.shown("head/minimap"));
  write(e, letters(40));
  CHECK_FALSE(e.driver.shown("head/minimap"));
  CHECK(tokens(e) < n);
  e.driver.wheel(4);
  e.driver.key(ImGuiKey_0);
  REQUIRE(e.settle());
  CHECK_FALSE(e.driver.shown("head/minimap"));
}

TEST_CASE("what is pointed at outside the part that is shown paints nothing beside the map") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  write(e, letters(40));
  e.driver.move_to(cell(e, 5, 2));
  e.driver.wheel(8);
  REQUIRE(e.settle());
  const Index outside = labelled(e, "key").back() + 3;  // whose column would lie beside the map
  REQUIRE(outside < 36);
  const Item on = e.driver.item("head/map");
  e.driver.move_to({5, 5});
  const Image before = e.app.window().capture();
  e.driver.hover("token " + std::to_string(outside));
  REQUIRE(e.state().hover.key == outside);
  const Image after = e.app.window().capture();
  int changed = 0;
  for (int y = static_cast<int>(on.min.y) - 60; y < static_cast<int>(on.max.y) + 40; ++y)
    for (int x = 345; x < 955; ++x) changed += !(before.at(x, y) == after.at(x, y));
  CHECK(changed == 0);
  e.driver.hover("token 2");
  const Image inside = e.app.window().capture();
  changed = 0;
  for (int y = static_cast<int>(on.min.y); y < static_cast<int>(on.max.y); ++y)
    for (int x = static_cast<int>(on.min.x); x < static_cast<int>(on.max.x); ++x)
      changed += !(before.at(x, y) == inside.at(x, y));
  CHECK(changed > 0);
}

TEST_CASE("the cell pointed at is said in words, whole, with where it comes from below") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, {1600, 1000}}) {
    Explore e(width, height);
    e.driver.click("Layer 1 Head 0");
    REQUIRE(e.settle());
    const Index query = tokens(e) - 1;
    const auto key = static_cast<Index>(map(e).stats().max_key[static_cast<std::size_t>(query)]);
    e.driver.move_to(cell(e, query, key));
    const Trace& trace = *e.results().run->trace;
    const std::string words = fmt::format("{} looks at {}: {:.2f}", token_word(trace, query), token_word(trace, key),
                                          map(e).weight(query, key));
    const Item said = e.driver.item(words);
    CHECK(said.min.x >= 340);
    CHECK(said.max.x <= static_cast<float>(width - 320));
    const auto below =
        e.items(fmt::format("query {}, key {} · blocks.1.attn.hook_pattern[0][{}, {}]", query, key, query, key));
    REQUIRE(below.size() == 1);
    CHECK(below[0].min.y >= said.max.y - 2);
    CHECK(below[0].max.x <= static_cast<float>(width - 320));
    e.driver.move_to(cell(e, 2, 5));
    CHECK(e.items(fmt::format("{} cannot see {}", token_word(trace, 2), token_word(trace, 5))).size() == 1);
  }
}

TEST_CASE("clicking a token shades the strip by its row, and the bars are named after it") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1600, 1000);
  e.driver.click("Layer 1 Head 0");
  REQUIRE(e.settle());
  const Theme& theme = e.app.window().theme();
  const auto ground = [&](int token) {
    const Item chip = e.driver.item("token " + std::to_string(token));
    e.driver.move_to({5, 5});
    return e.app.window().capture().at(static_cast<int>(chip.min.x) + 2, static_cast<int>(chip.center().y));
  };
  const auto shade = [&](double unit) { return mix(theme.background, theme.sequential->at(unit), 0.75); };
  const Index query = tokens(e) - 1;
  e.driver.click("token 20");
  REQUIRE(e.settle());
  REQUIRE(e.state().document.query == 20);
  for (const int key : {0, 3, 12, 19}) {
    CAPTURE(key);
    CHECK(ground(key) == shade(static_cast<double>(map(e).weight(20, key))));
  }
  const Trace& trace = *e.results().run->trace;
  CHECK(e.items(fmt::format("ROW")).size() <= 1);
  e.driver.key(ImGuiKey_Escape);
  double largest = 0;
  for (const double mass : map(e).stats().column_mass) largest = std::max(largest, mass);
  for (const int key : {0, 3, 12}) {
    CAPTURE(key);
    CHECK(ground(key) == shade(map(e).stats().column_mass[static_cast<std::size_t>(key)] / largest));
  }
  CHECK(trace.tokens.size() == static_cast<std::size_t>(query) + 1);
}

TEST_CASE("a head that is taken out is crossed through in the atlas and marked in its title") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1600, 1000);
  const auto red = [&](const char* head) {
    const Item thumb = e.driver.item(head);
    e.driver.move_to({5, 5});
    const Image shown = e.app.window().capture();
    int found = 0;
    for (int y = static_cast<int>(thumb.min.y) + 3; y < static_cast<int>(thumb.max.y) - 3; ++y)
      for (int x = static_cast<int>(thumb.min.x) + 3; x < static_cast<int>(thumb.max.x) - 3; ++x)
        found += shown.at(x, y) == e.app.window().theme().key;
    return found;
  };
  e.driver.click("Layer 0 Head 1");
  REQUIRE(e.settle());
  CHECK_FALSE(e.driver.shown("taken out"));
  CHECK(red("Layer 0 Head 1") == 0);
  e.driver.key(ImGuiKey_X);
  REQUIRE(e.settle());
  CHECK(e.driver.shown("taken out"));
  CHECK(red("Layer 0 Head 1") > 10);
  CHECK(red("Layer 0 Head 2") == 0);
  e.driver.click("Layer 0 Head 2");
  REQUIRE(e.settle());
  CHECK_FALSE(e.driver.shown("taken out"));
  // A whole layer, and some rows of a head only.
  e.app.explorer().editor.set_edits(
      {parse_intervention("1.*: ablate mean", "test"), parse_intervention("0.2@3..5: ablate zero", "test")});
  REQUIRE(e.settle());
  CHECK(e.driver.shown("taken out at 3 … 5"));
  for (const char* head : {"Layer 1 Head 0", "Layer 1 Head 3", "Layer 0 Head 2"}) CHECK(red(head) > 10);
  CHECK(red("Layer 0 Head 1") == 0);
}

TEST_CASE("one token in all heads: its row in every head, clicked, sorted, and written to a file") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, {1600, 1000}}) {
    CAPTURE(width);
    Explore e(width, height);
    e.driver.click("token 20");
    e.driver.click("Heads");
    REQUIRE(e.settle());
    CHECK(e.state().view.head_view == HeadView::heads);
    const Item layer = e.driver.item("heads/rows.1");
    CHECK(layer.max.x <= static_cast<float>(width - 320));
    const float step = (layer.max.y - layer.min.y) / 4;
    CHECK(step >= 11);  // so that every head has its number beside it
    const float w = (layer.max.x - layer.min.x) / static_cast<float>(tokens(e));
    e.driver.move_to({layer.min.x + 8.5f * w, layer.min.y + 2.5f * step});
    CHECK(e.state().hover.head == HeadId{1, 2});
    CHECK(e.state().hover.key == 8);
    CHECK(e.state().hover.query == 20);
    e.driver.click_at({layer.min.x + 8.5f * w, layer.min.y + 2.5f * step});
    CHECK(e.state().document.selected == HeadId{1, 2});
    CHECK(e.state().document.query == 20);
    REQUIRE(e.settle());

    e.driver.click("strongest first");
    REQUIRE(e.settle());
    const QueryRows rows = query_rows(*e.results().run->trace, 20);
    std::vector<std::pair<float, HeadId>> order;
    for (std::size_t r = 0; r < rows.heads.size(); ++r) {
      float most = 0;
      for (Index k = 0; k <= 20; ++k) most = std::max(most, rows.weights.at(static_cast<Index>(r), k));
      order.emplace_back(most, rows.heads[r]);
    }
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.first > b.first; });
    const Item list = e.driver.item("heads/rows");
    const float each = (list.max.y - list.min.y) / static_cast<float>(order.size());
    for (std::size_t r = 0; r < order.size(); ++r) {
      e.driver.move_to({list.center().x, list.min.y + (static_cast<float>(r) + 0.5f) * each});
      CHECK(e.state().hover.head == order[r].second);
    }

    const auto file = headscope::testing::scratch_dir("heads-view") / "rows.csv";
    export_view(e.app.explorer().jobs, e.app.explorer().state(), e.app.explorer().results(), {.file = file});
    REQUIRE(e.driver.until([&] { return std::filesystem::exists(file); }));
    const std::string csv = read_file(file);
    CHECK(csv.find(fmt::format("\nrows.1,2,2,8,{},{},", token_label(*e.results().run->trace, 8),
                               map(e).weight(20, 8))) != std::string::npos);
    std::filesystem::remove(file);
  }
}

TEST_CASE("a difference that is zero everywhere is neutral, on the diverging scale, and can be looked at") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  e.app.explorer().editor.set_edits({parse_intervention("1.0: ablate zero", "test")});
  e.driver.click("Layer 0 Head 2");  // below the edit: nothing changes
  REQUIRE(e.settle());
  e.driver.click("Δ");
  REQUIRE(e.settle());
  e.driver.move_to({5, 5});
  const Image shown = e.app.window().capture();
  const Color neutral = e.app.window().theme().diverging->at(0.5);
  for (const auto& [query, key] : {std::pair<Index, Index>{20, 3}, {40, 40}, {57, 0}}) {
    const ImVec2 at = cell(e, query, key);
    CHECK(shown.at(static_cast<int>(at.x), static_cast<int>(at.y)) == neutral);
  }
  const Item bar = e.driver.item("head/colorbar");
  const auto width = static_cast<double>(bar.max.x - bar.min.x);
  for (const double unit : {0.02, 0.5, 0.98}) {  // blue, neutral, red
    const Color on_bar = shown.at(static_cast<int>(static_cast<double>(bar.min.x) + unit * width),
                                  static_cast<int>(bar.center().y)),
                wanted = e.app.window().theme().diverging->at(unit);
    CHECK(std::abs(on_bar.r - wanted.r) < 12);
    CHECK(std::abs(on_bar.b - wanted.b) < 12);
  }
  e.driver.move_to(cell(e, 20, 3));
  const Trace& trace = *e.results().run->trace;
  const float weight = map(e).weight(20, 3);
  CHECK(e.items(looks_at(trace, 20, 3, static_cast<double>(weight), static_cast<double>(weight))).size() == 1);
}

}  // namespace headscope::map_view_test
