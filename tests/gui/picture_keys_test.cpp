// Pictures by keyboard: Tab reaches them, arrows go from mark to mark and from cell to cell, Enter and Space do what a
// click does.

#include <imgui_internal.h>

#include "app/widgets/scene_walk.h"
#include "core/edits/edit.h"
#include "tests/gui/analyse_page.h"
#include "viz/export/pango_text.h"

namespace headscope::picture_keys_test {

using testing::AnalysePage;
using testing::Explore;

namespace {

std::string at(App& app) {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  if (g.NavCursorVisible)
    for (const Item& item : app.window().items().items())
      if (item.id == g.NavId) return item.label;
  return "";
}

template <class Page>
void reach(Page& page, const std::string& view) {
  std::string way;
  for (int i = 0; i < 150 && at(page.app) != view; ++i) {
    page.driver.key(ImGuiKey_Tab);
    way += "[" + at(page.app) + "] ";
  }
  CAPTURE(way);
  REQUIRE(at(page.app) == view);
}

/// What the keyboard is at, framed; its tooltip beside it.
template <class Page>
void check_shown(Page& page, const std::string& mark, bool tooltip = true) {
  page.driver.frames(3);
  CAPTURE(mark);
  REQUIRE(page.driver.shown("keys at " + mark));
  const Item item = page.driver.item("keys at " + mark);
  const Image seen = page.app.window().capture();
  const ImVec4 wanted = ImGui::GetStyle().Colors[ImGuiCol_NavCursor];
  const Color frame = seen.at(static_cast<int>(item.center().x), static_cast<int>(item.min.y) - 4);
  CHECK(frame.r == doctest::Approx(255 * static_cast<double>(wanted.x)).epsilon(0.03));
  CHECK(frame.b == doctest::Approx(255 * static_cast<double>(wanted.z)).epsilon(0.03));
  if (!tooltip) return;
  const ImGuiWindow* tip = ImGui::FindWindowByName("##Tooltip_00");
  REQUIRE(tip);
  CHECK(tip->WasActive);
  CHECK(std::abs(tip->Pos.x - item.max.x) < 60);
  CHECK(tip->Pos.y - item.max.y < 60);
}

Mark dot(double x, double y, Meaning meaning, const char* id) {
  return {Box{{x, y, 10, 10}, rgb(0xFFFFFF), {}, 0, 0}, id, "dot", std::move(meaning)};
}

}  // namespace

TEST_CASE("an arrow leads to the nearest mark that way, in a heatmap to the next cell, and past what only explains") {
  const PangoText measure;
  Scene scene;
  scene.add(dot(100, 100, TokenAt{0}, "middle"));
  scene.add(dot(160, 104, TokenAt{1}, "right"));
  scene.add(dot(140, 190, TokenAt{2}, "right and far below"));
  scene.add(dot(40, 96, TokenAt{3}, "left"));
  scene.add(dot(120, 100, LabelOf{}, "a label"));
  scene.add(dot(118, 100, TokenAt{0}, "the middle once more"));
  Heatmap map;
  map.rect = {90, 200, 90, 60};
  map.values = Tensor::zeros({2, 3});
  scene.add({map, "map", ""});
  map.rect = {90, 270, 90, 10};
  scene.add({map, "colorbar", "", Aside::color_bar});
  const SceneStop from{&scene.marks[0], std::nullopt, {100, 100, 10, 10}};
  const auto led = [&](const SceneStop& at, Way way) {
    const auto next = next_stop(scene, at, way, measure);
    return next ? next->mark->id : "nowhere";
  };
  CHECK(led(from, Way::right) == "right");
  CHECK(led(from, Way::left) == "left");
  CHECK(led(from, Way::up) == "left");  // a little higher: better than nothing
  CHECK(led(from, Way::down) == "map");
  const SceneStop low = *next_stop(scene, {&scene.marks[2], std::nullopt, {140, 190, 10, 10}}, Way::down, measure);
  CHECK(low.mark->id == "map");
  CHECK(low.cell == Cell{0, 1});
  const SceneStop right = *next_stop(scene, low, Way::right, measure);
  CHECK(right.cell == Cell{0, 2});
  CHECK(right.rect.x == doctest::Approx(150));
  CHECK(next_stop(scene, right, Way::down, measure)->cell == Cell{1, 2});
  CHECK_FALSE(next_stop(scene, *next_stop(scene, right, Way::down, measure), Way::down, measure));
  CHECK(first_stop(scene, measure)->mark->id == "left");
  const auto again = same_stop(scene, "map", Cell{7, 7}, {}, measure);
  REQUIRE(again);
  CHECK(again->cell == Cell{1, 2});
  CHECK(same_stop(scene, "gone", std::nullopt, {150, 100, 10, 10}, measure)->mark->id == "right");
}

TEST_CASE("heads in the atlas: Tab, arrows, Enter; Escape gives the arrows back") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  e.app.explorer().editor.select({1, 3});
  REQUIRE(e.settle());
  reach(e, "atlas");
  check_shown(e, "atlas/head.0.0");
  e.driver.key(ImGuiKey_RightArrow);
  e.driver.key(ImGuiKey_DownArrow);
  CHECK(e.state().hover.head == HeadId{1, 1});
  check_shown(e, "atlas/head.1.1");
  CHECK(e.state().document.selected == HeadId{1, 3});
  e.driver.key(ImGuiKey_Enter);
  CHECK(e.state().document.selected == HeadId{1, 1});
  e.driver.key(ImGuiKey_RightArrow);
  e.driver.key(ImGuiKey_Space);
  CHECK(e.state().document.selected == HeadId{1, 2});
  REQUIRE(e.settle());
  CHECK(at(e.app) == "atlas");  // the picture is another one now, the place is the same
  CHECK(e.driver.shown("keys at atlas/head.1.2"));
  e.driver.key(ImGuiKey_Escape);
  CHECK_FALSE(e.driver.shown("keys at atlas/head.1.2"));
  e.driver.key(ImGuiKey_RightArrow);
  CHECK(e.state().document.selected == HeadId{1, 3});
}

TEST_CASE("cells of a head's map: arrows go from cell to cell, with Shift ten at once, and Enter pins") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  reach(e, "head");
  for (int i = 0; i < 3; ++i) e.driver.key(ImGuiKey_DownArrow);
  e.driver.key(ImGuiKey_DownArrow, ImGuiMod_Shift);
  e.driver.key(ImGuiKey_RightArrow);
  e.driver.key(ImGuiKey_RightArrow);
  CHECK(e.state().hover.query == 13);
  CHECK(e.state().hover.key == 2);
  check_shown(e, "head/map");
  e.driver.key(ImGuiKey_Enter);
  CHECK(e.state().document.query == 13);
  CHECK(e.state().document.key == 2);
  REQUIRE(e.settle());
  e.driver.key(ImGuiKey_UpArrow);
  CHECK(e.state().hover.query == 12);
  CHECK(e.state().hover.key == 2);
  CHECK(e.state().document.query == 13);
}

TEST_CASE("bars of a page and cells of its matrix are walked and pressed as the atlas is") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage p("induction", 1280, 720);
  p.open("Loss per token");
  reach(p, "losses");
  p.driver.key(ImGuiKey_RightArrow);
  p.driver.key(ImGuiKey_RightArrow);
  p.driver.key(ImGuiKey_Enter);
  CHECK(p.state().document.query == 2);  // the third bar stands at token 3, which row 2 guesses
  REQUIRE(p.settle());
  CHECK(at(p.app) == "losses");
  p.driver.key(ImGuiKey_LeftArrow);
  p.driver.key(ImGuiKey_Enter);
  CHECK(p.state().document.query.value_or(-1) == 1);
}

TEST_CASE("heads for an edit are chosen in its form by arrows and Space, whole layers from the edge") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(1280, 720);
  const auto add = [&] {
    e.driver.click("Add an edit");
    e.driver.frames(3);
    reach(e, "heads");
    e.driver.key(ImGuiKey_RightArrow);
    e.driver.key(ImGuiKey_DownArrow);
  };
  const auto done = [&] {
    e.driver.key(ImGuiKey_Space);
    e.driver.click("Add");
    REQUIRE(e.settle());
    return describe(e.state().document.edits.back());
  };
  add();
  check_shown(e, "heads/1.1", false);
  CHECK(done() == "1.1: ablate zero");
  add();
  e.driver.key(ImGuiKey_LeftArrow, ImGuiMod_Shift);
  CHECK(done() == "1.*: ablate zero");
}

}  // namespace headscope::picture_keys_test
