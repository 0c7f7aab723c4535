// Changing single cells by hand: bars and cells dragged, masks painted, what follows, and undo.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/edits/weight_edit.h"
#include "tests/gui/explore.h"

namespace headscope::cell_tools_test {

using testing::Explore;

namespace {
/// Where the cell (query, key) of the head's map is on screen.
ImVec2 cell(Explore& e, Index query, Index key) {
  const Item map = e.driver.item("head/map");
  const auto n = static_cast<float>(e.results().run->trace->tokens.size());
  const float w = (map.max.x - map.min.x) / n, h = (map.max.y - map.min.y) / n;
  return {map.min.x + (static_cast<float>(key) + 0.5f) * w, map.min.y + (static_cast<float>(query) + 0.5f) * h};
}
float weight(Explore& e, Index query, Index key) {
  return e.results().map(e.state().document.selected)->weight(query, key);
}
}  // namespace

TEST_CASE("a bar of the row is dragged to a weight; the others of the row share the rest; undo is one step") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  e.driver.click("Layer 1 Head 0");
  e.driver.click("token 9");
  REQUIRE(e.settle());
  std::vector<float> before(e.results().run->trace->tokens.size());
  e.results().map({1, 0})->row(9, before);
  const Item bar = e.driver.item("row/bar.4");
  e.driver.drag({bar.center().x, bar.max.y - 1}, {bar.center().x, bar.max.y - 30}, 6);
  REQUIRE(e.settle());
  REQUIRE(e.state().document.edits.size() == 1);
  const auto* set = e.state().document.edits[0].action.as<SetWeight>();
  REQUIRE(set);
  CHECK(set->query == 9);
  CHECK(set->key == 4);
  CHECK(set->weight > 0.1);
  CHECK(weight(e, 9, 4) == doctest::Approx(set->weight).epsilon(1e-4));
  const float left = (1 - weight(e, 9, 4)) / (1 - before[4]);
  for (const Index key : {0, 1, 9})
    CHECK(weight(e, 9, key) == doctest::Approx(before[static_cast<std::size_t>(key)] * left).epsilon(1e-4));
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(e.settle());
  CHECK(e.state().document.edits.empty());
  CHECK(weight(e, 9, 4) == before[4]);
}

TEST_CASE("a cell of the map is dragged, the effect shows, and before, after and difference can be seen") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  e.driver.click("Layer 1 Head 0");
  REQUIRE(e.settle());
  const Index n = static_cast<Index>(e.results().run->trace->tokens.size()), last = n - 1;
  const float before = weight(e, last, 2);
  e.driver.key(ImGuiKey_E);
  REQUIRE(e.state().view.map_tool == MapTool::weight);
  const ImVec2 at = cell(e, last, 2);
  e.driver.drag(at, {at.x, at.y - 120}, 6);
  REQUIRE(e.settle());
  REQUIRE(e.state().document.edits.size() == 1);
  CHECK(weight(e, last, 2) > before + 0.4);
  CHECK_FALSE(e.results().map({1, 0})->rule() == nullptr);  // inside the mask, so that the mask is still known
  REQUIRE(e.results().effect);
  CHECK(e.results().effect->change.kl > 0.1);
  CHECK(e.driver.shown("Δ"));
  e.driver.click("Δ");
  CHECK(e.state().view.shown == Shown::difference);
  REQUIRE(e.settle());
  CHECK(e.driver.shown("L1 H0"));  // the head that moved most
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(e.settle());
  CHECK_FALSE(e.driver.shown("Δ"));
  CHECK(weight(e, last, 2) == before);
}

TEST_CASE("cells are painted out of a mask and back into it") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  e.driver.click("Layer 1 Head 0");
  e.driver.key(ImGuiKey_M);
  REQUIRE(e.settle());
  REQUIRE(e.state().view.map_tool == MapTool::mask);
  e.driver.drag(cell(e, 20, 5), cell(e, 20, 8), 9);
  REQUIRE(e.settle());
  CHECK(mask_of(e.state().document.edits, {1, 0}) == "causal & not cells 20:5-8");
  CHECK(weight(e, 20, 6) == 0);
  CHECK(e.results().map({1, 0})->masked(20, 6));
  e.driver.click_at(cell(e, 3, 10));  // ahead of its query
  REQUIRE(e.settle());
  CHECK(mask_of(e.state().document.edits, {1, 0}) == "causal & not cells 20:5-8 | cells 3:10");
  CHECK_FALSE(e.results().map({1, 0})->masked(3, 10));
  e.driver.drag(cell(e, 20, 5), cell(e, 20, 8), 9);
  e.driver.click_at(cell(e, 3, 10));
  REQUIRE(e.settle());
  CHECK(e.state().document.edits.empty());
  for (int step = 0; step < 4; ++step) e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  CHECK(e.state().document.edits.empty());
  e.driver.key(ImGuiKey_V);
  CHECK(e.state().view.map_tool == MapTool::style);
}

TEST_CASE("the two tokens of the logit difference are chosen by clicks") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  const auto& next = e.results().run->next;
  CHECK(contrast_of(e.state(), e.results()) == std::pair{next[0].id, next[1].id});
  const std::string third = e.results().model.tokenizer->token(next[2].id).label;
  e.driver.click(third, 1);
  CHECK(contrast_of(e.state(), e.results()) == std::pair{next[0].id, next[2].id});
  e.driver.click(e.results().model.tokenizer->token(next[1].id).label);
  CHECK(contrast_of(e.state(), e.results()) == std::pair{next[1].id, next[2].id});
}

TEST_CASE(
    "a dragged weight, an ablation and a mask are undone to the bit-same run, and redone to the bit-same edited one") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  e.driver.click("Layer 1 Head 0");
  REQUIRE(e.settle());
  const auto bits = [&] {
    std::vector<std::uint32_t> all;
    const auto add = [&](const Tensor& tensor) {
      const Tensor packed = tensor.packed();
      for (Index i = 0; i < packed.size(); ++i) all.push_back(std::bit_cast<std::uint32_t>(packed.data()[i]));
    };
    const Trace& trace = *e.results().run->trace;
    add(trace.logits);
    for (const AttentionMap& map : trace.maps) add(map.to_dense());
    for (const auto& row : e.results().facts->table.value)
      for (const double value : row) {
        const auto both = std::bit_cast<std::uint64_t>(value);
        all.push_back(static_cast<std::uint32_t>(both));
        all.push_back(static_cast<std::uint32_t>(both >> 32));
      }
    return all;
  };
  std::vector<std::vector<std::uint32_t>> states{bits()};
  const auto done = [&] {
    REQUIRE(e.settle());
    states.push_back(bits());
    CHECK(states.back() != states[states.size() - 2]);
  };
  e.driver.key(ImGuiKey_E);
  const ImVec2 at = cell(e, 20, 3);
  e.driver.drag(at, {at.x, at.y - 90}, 8);  // every move of the hand is a run of its own
  done();
  e.driver.key(ImGuiKey_X);
  done();
  e.driver.key(ImGuiKey_M);
  e.driver.click_at(cell(e, 12, 5));
  done();
  for (std::size_t i = states.size() - 1; i-- > 0;) {
    CAPTURE(i);
    e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
    REQUIRE(e.settle());
    CHECK(bits() == states[i]);
  }
  CHECK(e.state().document.edits.empty());
  for (std::size_t i = 1; i < states.size(); ++i) {
    CAPTURE(i);
    e.driver.key(ImGuiKey_Y, ImGuiMod_Ctrl);
    REQUIRE(e.settle());
    CHECK(bits() == states[i]);
  }
}

}  // namespace headscope::cell_tools_test
