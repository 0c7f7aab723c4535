// Tab and arrows reach every control of every workspace; the arrows walk heads and tokens again when the pointer or
// Escape has ended that.

#include <imgui_internal.h>

#include <algorithm>
#include <set>

#include "app/all_workspaces.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"

namespace headscope::keyboard_test {

using testing::Explore;

namespace {

struct Program {
  App app;
  AllWorkspaces workspaces{app};
  headscope::testing::Driver driver{app.window(), [this] { app.frame(); }};
  Program() : app(Explore::options(1280, 900)) { settle(); }
  void settle() {
    int quiet = 0;
    REQUIRE(driver.until([&] { return (quiet = app.settled() && app.explorer().results().facts ? quiet + 1 : 0) > 8; },
                         5000));
  }
  void go_to(const char* title) {
    for (std::size_t i = 0; i < workspace_list.size(); ++i)
      if (workspace_list[i].title == title) app.requests().workspace = static_cast<int>(i);
    driver.frames(4);
    settle();
  }
  /// The label of what the keyboard is at; "" = nothing, or an item without a name.
  std::string at() {
    const ImGuiContext& g = *ImGui::GetCurrentContext();
    if (!g.NavCursorVisible || g.NavId == 0) return "";
    for (const Item& item : app.window().items().items())
      if (item.id == g.NavId) return item.label;
    return "?";
  }
  /// Where Tab leads, once round.
  std::vector<std::string> round() {
    std::vector<std::string> all;
    std::set<ImGuiID> seen;
    ImGuiID first = 0;
    for (int i = 0; i < 400; ++i) {
      driver.key(ImGuiKey_Tab);
      const ImGuiID id = ImGui::GetCurrentContext()->NavId;
      if (i == 0) first = id;
      if (!seen.insert(id).second) {
        CHECK(id == first);  // not held by one on the way
        break;
      }
      all.push_back(at());
    }
    driver.key(ImGuiKey_Escape);
    driver.key(ImGuiKey_Escape);
    return all;
  }
};

bool has(const std::vector<std::string>& all, const char* name) {
  return std::ranges::find(all, name) != all.end();
}

}  // namespace

TEST_CASE("a hand that lets go of Ctrl before the frame comes has still pressed it") {
  HEADSCOPE_NEEDS_DISPLAY();
  Program p;
  p.app.explorer().editor.set_temperature(0.5);
  p.settle();
  REQUIRE(p.app.explorer().editor.history().can_undo());
  ImGuiIO& io = ImGui::GetIO();
  io.AddKeyEvent(ImGuiMod_Ctrl, true);
  p.driver.frames(2);
  for (const auto& [key, down] : {std::pair{ImGuiKey_Z, true}, {ImGuiKey(ImGuiMod_Ctrl), false}, {ImGuiKey_Z, false}})
    io.AddKeyEvent(key, down);
  p.driver.frames(4);
  p.settle();
  CHECK_FALSE(p.app.explorer().editor.history().can_undo());
}

TEST_CASE("Tab goes round through the controls of every workspace, top bar and all columns") {
  HEADSCOPE_NEEDS_DISPLAY();
  Program p;
  const std::vector<std::pair<const char*, std::vector<const char*>>> wanted = {
      {"Explore", {"Map", "Arcs", "Layer", "All heads", "##prompt"}},
      {"Generate", {"Step", "Top-k", "Top-p", "##generation seed"}},
      {"Compare", {"Text B", "Model B"}},
      {"Positions", {"Dials"}},
      {"Mechanisms", {"##search", "Steps"}},
      {"Analyse", {"##search", "Head ablation", "Direct logit attribution"}},
      {"Corpus", {"Start"}},
      {"Train", {"Start training", "Llama", "##Layers", "Learning rate"}}};
  for (const auto& [workspace, names] : wanted) {
    CAPTURE(workspace);
    p.go_to(workspace);
    const std::vector<std::string> all = p.round();
    std::string list;
    for (const std::string& each : all) list += "[" + each + "] ";
    CAPTURE(list);
    CHECK(all.size() >= 15);
    for (const char* common : {"Model", "Explore", "Generate", "Analyse", "Export ▾"}) CHECK(has(all, common));
    for (const char* name : names) {
      CAPTURE(name);
      CHECK(has(all, name));
    }
  }
}

TEST_CASE("arrows walk heads until Tab, then the controls, and heads again after Escape or a click") {
  HEADSCOPE_NEEDS_DISPLAY();
  Program p;
  const auto head = [&] { return p.app.explorer().state().document.selected; };
  p.app.explorer().editor.select({0, 0});
  p.driver.frames(2);
  p.driver.key(ImGuiKey_RightArrow);
  CHECK(head() == HeadId{0, 1});
  CHECK(p.at() == "");
  p.driver.key(ImGuiKey_Tab);
  CHECK(p.at() != "");
  const std::string first = p.at();
  p.driver.key(ImGuiKey_RightArrow);
  CHECK(p.at() != first);
  CHECK(head() == HeadId{0, 1});
  p.driver.key(ImGuiKey_Escape);
  CHECK(p.at() == "");
  p.driver.key(ImGuiKey_DownArrow);
  CHECK(head() == HeadId{1, 1});
  p.driver.key(ImGuiKey_Tab);
  CHECK(p.at() != "");
  p.driver.click("Arcs");
  CHECK(p.at() == "");
  p.driver.key(ImGuiKey_LeftArrow);
  CHECK(head() == HeadId{1, 0});
}

TEST_CASE("at the keyboard a slider moves by Left and Right, a button is pressed by Space, a list chosen by Enter") {
  HEADSCOPE_NEEDS_DISPLAY();
  Program p;
  const auto reach = [&](const char* name) {
    std::string way;
    for (int i = 0; i < 100 && p.at() != name; ++i) {
      p.driver.key(ImGuiKey_Tab);
      way += "[" + p.at() + "] ";
    }
    CAPTURE(way);
    REQUIRE(p.at() == name);
  };
  p.go_to("Generate");
  double& top_p = p.workspaces.generation.settings().sampling.top_p;
  REQUIRE(top_p == 1);
  reach("Top-p");
  p.driver.key(ImGuiKey_LeftArrow);
  CHECK(top_p == doctest::Approx(0.99));
  p.driver.key(ImGuiKey_LeftArrow, ImGuiMod_Shift);
  CHECK(top_p == doctest::Approx(0.89));
  p.driver.key(ImGuiKey_RightArrow);
  CHECK(top_p == doctest::Approx(0.90));
  CHECK(p.at() == "Top-p");  // and it stays there

  p.go_to("Train");
  reach("Llama");
  p.driver.key(ImGuiKey_Space);
  CHECK(p.workspaces.training.draft().model.family == "llama");

  p.go_to("Analyse");
  reach("Attention rollout and flow");
  p.driver.key(ImGuiKey_Enter);
  CHECK(p.app.settings().pages["Analyse"] == "rollout");

  p.go_to("Explore");
  reach("##prompt");
  p.driver.type("x");
  CHECK(p.app.explorer().state().document.text.find('x') != std::string::npos);
  p.driver.key(ImGuiKey_Tab);
  CHECK(p.at() != "##prompt");
}

}  // namespace headscope::keyboard_test
